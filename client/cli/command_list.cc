#include "client/cli/command.h"
#include "client/cli/commands.h"

namespace regatta::cli {

absl::Span<const Command> Commands() {
  static constexpr Command kCommands[] = {
      {AddUp},     {AddDevices}, {AddDevice}, {AddTune},    {AddJobs},
      {AddCancel}, {AddResume},  {AddBest},   {AddRecords}, {AddCompile},
      {AddRun},    {AddOps},     {AddLog},    {AddCerts},   {AddAudit},
      {AddDoctor},
  };
  return kCommands;
}

}  // namespace regatta::cli
