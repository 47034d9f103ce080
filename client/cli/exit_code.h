// What the program's exit codes mean. A contract for scripts (docs/cli.md).
#ifndef REGATTA_CLIENT_CLI_EXIT_CODE_H_
#define REGATTA_CLIENT_CLI_EXIT_CODE_H_

#include <string_view>

#include "absl/status/status.h"

namespace regatta::cli {

inline constexpr int kExitDone = 0;
inline constexpr int kExitFailed = 1;
inline constexpr int kExitUsage = 2;
inline constexpr int kExitNotExact = 3;

// Prints "regatta: message" on standard error; InvalidArgument is bad usage,
// every other error a failure.
int Fail(const absl::Status& status);

// Prints "regatta: message" on standard error; the middle of a message that
// quotes something endless is left out.
void PrintError(std::string_view message);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_EXIT_CODE_H_
