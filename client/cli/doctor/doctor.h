// What `regatta doctor` looks at: findings about this machine, its daemons and
// its boards, each with what to do about it. A new area is a file with a
// function and a line in the list of doctor_list.cc.
#ifndef REGATTA_CLIENT_CLI_DOCTOR_DOCTOR_H_
#define REGATTA_CLIENT_CLI_DOCTOR_DOCTOR_H_

#include <string>
#include <vector>

#include "absl/types/span.h"
#include "client/cli/command.h"
#include "regatta/v1/dispatch_service.pb.h"

namespace regatta::cli {

enum class Level {
  kOk,
  kWarn,  // works, but at a cost that `what` names
  kFail,  // something does not work
};
// "ok", "warn", "fail".
const char* LevelName(Level level);

struct Finding {
  Level level = Level::kOk;
  std::string check;   // "cpu": unique in its area
  std::string what;    // what was found, one line
  std::string remedy;  // a command, or what to change; "": nothing to do
};

struct DoctorOptions {
  ServerFlags server;
  std::string log;           // the tuning log's file; "": none is here
  std::string fleet_config;  // the tracker's file of the fleet; "": none named
  std::string root;          // before system paths; "" outside tests
};

struct Area {
  const char* name;  // "toolchain"
  std::vector<Finding> (*examine)(const DoctorOptions& options);
};

// THE list, in the order in which they are shown.
absl::Span<const Area> Areas();

std::vector<Finding> ExamineToolchain(const DoctorOptions& options);
std::vector<Finding> ExamineClocks(const DoctorOptions& options);
std::vector<Finding> ExamineSandbox(const DoctorOptions& options);
std::vector<Finding> ExamineServer(const DoctorOptions& options);
// Posts a test to the webhook that the fleet's file names.
std::vector<Finding> ExamineFleetFile(const DoctorOptions& options);
std::vector<Finding> ExamineLog(const DoctorOptions& options);

// What the features mean that a board's sandbox has ("uid,netns,...", as an
// agent reports them), and what those cost that are missing.
std::vector<Finding> JudgeSandbox(const std::vector<std::string>& features);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_DOCTOR_DOCTOR_H_
