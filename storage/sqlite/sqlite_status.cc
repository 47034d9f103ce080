#include "storage/sqlite/sqlite_status.h"

#include <cerrno>
#include <system_error>

#include "absl/strings/str_cat.h"

namespace regatta::sqlite {
namespace {

bool IsFull(int os_error) { return os_error == ENOSPC || os_error == EDQUOT; }

std::string SystemMessage(int os_error) {
  return std::generic_category().message(os_error);
}

}  // namespace

absl::Status SqliteStatus(int code, int os_error, const std::string& message,
                          const std::string& path) {
  const std::string text = absl::StrCat(
      path, ": ", message, " (SQLite error ", code,
      os_error != 0 ? absl::StrCat(", ", SystemMessage(os_error)) : "", ")");
  switch (code & 0xff) {
    case SQLITE_FULL:
      return absl::ResourceExhaustedError(
          absl::StrCat(text, ": no space left; free some"));
    case SQLITE_NOMEM:
      return absl::ResourceExhaustedError(text);
    case SQLITE_IOERR:
      if (IsFull(os_error)) {
        return absl::ResourceExhaustedError(
            absl::StrCat(text, ": no space left; free some"));
      }
      return absl::UnavailableError(text);
    case SQLITE_BUSY:
    case SQLITE_LOCKED:
      return absl::UnavailableError(text);
    case SQLITE_CORRUPT:
    case SQLITE_NOTADB:
      return absl::DataLossError(
          absl::StrCat(text, ": the tuning log is corrupt"));
    case SQLITE_PERM:
    case SQLITE_AUTH:
      return absl::PermissionDeniedError(text);
    case SQLITE_CANTOPEN:
      if (os_error != 0) return SystemStatus(os_error, "open", path);
      return absl::UnavailableError(text);
    case SQLITE_READONLY:
      return absl::FailedPreconditionError(text);
    case SQLITE_INTERRUPT:
      return absl::CancelledError(text);
    case SQLITE_TOOBIG:
      return absl::InvalidArgumentError(text);
    default:
      return absl::InternalError(text);
  }
}

absl::Status SystemStatus(int os_error, const std::string& doing,
                          const std::string& path) {
  const std::string text =
      absl::StrCat(path, ": cannot ", doing, ": ", SystemMessage(os_error));
  switch (os_error) {
    case EACCES:
    case EPERM:
    case EROFS:
      return absl::PermissionDeniedError(text);
    case ENOENT:
    case ENOTDIR:
      return absl::NotFoundError(text);
    case ENOSPC:
    case EDQUOT:
    case EMFILE:
    case ENFILE:
    case ENOMEM:
      return absl::ResourceExhaustedError(text);
    case EISDIR:
    case ELOOP:
    case ENAMETOOLONG:
      return absl::InvalidArgumentError(text);
    default:
      return absl::UnavailableError(text);
  }
}

}  // namespace regatta::sqlite
