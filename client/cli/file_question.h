// Best-known answers from a file, without a server.
#ifndef REGATTA_CLIENT_CLI_FILE_QUESTION_H_
#define REGATTA_CLIENT_CLI_FILE_QUESTION_H_

#include <functional>
#include <memory>
#include <string>

#include "CLI/CLI.hpp"
#include "absl/status/statusor.h"
#include "client/cli/command.h"
#include "regatta/v1/tuning_service.pb.h"

namespace regatta::cli {

// Where `best` and `compile` ask: a server, unless a file is named.
struct SourceFlags {
  ServerFlags server;
  std::string log;       // --log
  std::string snapshot;  // --snapshot
};
void AddSourceFlags(CLI::App* command, SourceFlags* flags);

// Answers requests, all from one source. Safe from one thread at a time.
using BestAsker =
    std::function<absl::StatusOr<v1::BestAnswer>(const v1::BestRequest&)>;

// InvalidArgument when two sources are named. Of a file: FailedPrecondition
// when it is not there or a server holds it; what else is wrong with it as
// BestFile says. A server is asked only when the first question is put.
absl::StatusOr<BestAsker> OpenSource(const SourceFlags& flags);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_FILE_QUESTION_H_
