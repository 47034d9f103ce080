// Files that appear whole or not at all.
#ifndef REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
#define REGATTA_CLIENT_CLI_FILE_OUTPUT_H_

#include <string>
#include <string_view>

#include "absl/status/status.h"

namespace regatta::cli {

// Writes a temporary file beside `path` and renames it. FailedPrecondition with
// the path and the system's reason; nothing is left behind then.
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes, bool executable);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
