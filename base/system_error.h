// What the system says when it refuses something, as a status.
#ifndef REGATTA_BASE_SYSTEM_ERROR_H_
#define REGATTA_BASE_SYSTEM_ERROR_H_

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace regatta {

// "cannot open PATH: No such file or directory", FailedPrecondition. `error`:
// of errno.
inline absl::Status SystemError(const std::string& path, const char* what,
                                int error) {
  return absl::FailedPreconditionError(
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error)));
}

// "pipe: Too many open files" of errno, Internal.
inline absl::Status SystemError(absl::string_view what) {
  return absl::InternalError(absl::StrCat(what, ": ", std::strerror(errno)));
}

// As the first, with the kind of trouble as code: ResourceExhausted where there
// is no room, PermissionDenied where the file may not be touched, else
// Internal.
inline absl::Status FileError(const std::string& path, const char* what,
                              int error) {
  const std::string message =
      absl::StrCat("cannot ", what, " ", path, ": ", std::strerror(error));
  switch (error) {
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
      return absl::ResourceExhaustedError(message);
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(message);
    default:
      return absl::InternalError(message);
  }
}

}  // namespace regatta

#endif  // REGATTA_BASE_SYSTEM_ERROR_H_
