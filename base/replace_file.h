// Small files that are whole or not there: written beside, synced, renamed.
#ifndef REGATTA_BASE_REPLACE_FILE_H_
#define REGATTA_BASE_REPLACE_FILE_H_

#include <sys/types.h>

#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta {

// Puts `bytes` at `path` with exactly this mode; durable when it returns OK. A
// reader sees the old bytes or the new ones. The error names the path and the
// system's reason; the old file then stands.
absl::Status ReplaceFile(const std::string& path, std::string_view bytes,
                         mode_t mode);

// All of a small file. NotFound where there is none; ResourceExhausted beyond
// `max_bytes`; other errors are Unavailable. Messages name the path.
absl::StatusOr<std::string> ReadSmallFile(const std::string& path,
                                          size_t max_bytes = 1 << 20);

// The same of an open one; `path` is for messages.
absl::StatusOr<std::string> ReadSmallFile(int fd, const std::string& path,
                                          size_t max_bytes = 1 << 20);

}  // namespace regatta

#endif  // REGATTA_BASE_REPLACE_FILE_H_
