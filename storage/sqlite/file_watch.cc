#include "storage/sqlite/file_watch.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace regatta::sqlite {
namespace {

absl::Status Gone(const std::string& path, bool another) {
  return absl::FailedPreconditionError(absl::StrCat(
      path,
      another ? ": another file was put in the place of the one in use"
              : ": the file in use was deleted or moved away",
      "; nothing is stored until that very file is back. To save what it "
      "holds, run `regatta log backup FILE` before this process ends"));
}

}  // namespace

FileWatch::FileWatch(std::string path)
    : path_(std::move(path)), wal_path_(path_ + "-wal"), file_(Look(path_)) {}

std::optional<FileWatch::Identity> FileWatch::Look(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) != 0) return std::nullopt;
  return Identity{info.st_dev, info.st_ino};
}

absl::Status FileWatch::Check() {
  const std::optional<Identity> file = Look(path_);
  if (!file || file != file_) return Gone(path_, file.has_value());
  const std::optional<Identity> wal = Look(wal_path_);
  std::lock_guard lock(mutex_);
  if (!wal_) {
    wal_ = wal;
  } else if (wal != wal_) {
    return Gone(wal_path_, wal.has_value());
  }
  return absl::OkStatus();
}

}  // namespace regatta::sqlite
