// What the system says when it refuses something, as a status.
#ifndef REGATTA_BASE_SYSTEM_ERROR_H_
#define REGATTA_BASE_SYSTEM_ERROR_H_

#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace regatta {

// "cannot open PATH: No such file or directory", FailedPrecondition. `error`:
// of errno.
inline absl::Status SystemError(const std::string& path, const char* what,
                                int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error)));
}

}  // namespace regatta

#endif  // REGATTA_BASE_SYSTEM_ERROR_H_
