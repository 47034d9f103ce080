// Files that appear whole or not at all.
#ifndef REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
#define REGATTA_CLIENT_CLI_FILE_OUTPUT_H_

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta::cli {

// A file that is written beside its place and moved there by Commit, so that
// several files can be made ready before the first of them appears. Nothing is
// left behind when the object goes without a commit.
class StagedFile {
 public:
  // Begins an empty one; what killed processes left of the same file goes.
  // FailedPrecondition with the path and the system's
  // reason.
  static absl::StatusOr<StagedFile> Create(const std::string& path,
                                           bool executable);
  // One that holds `bytes`. FailedPrecondition as above.
  static absl::StatusOr<StagedFile> Write(const std::string& path,
                                          std::string_view bytes,
                                          bool executable);
  StagedFile(StagedFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, "")),
        fd_(std::exchange(other.fd_, -1)) {}
  ~StagedFile();

  // Where the bytes are until the commit.
  const std::string& temporary() const { return temporary_; }
  // FailedPrecondition as above. REQUIRES: not closed.
  absl::Status Append(std::string_view bytes);
  // Nothing more will come; what was written is on the disk. Commit does it
  // where nobody did.
  absl::Status Close();

  // Puts the file in its place, where it stays after a power failure.
  // FailedPrecondition as above; the place is unchanged then, or its folder
  // could not be synced.
  absl::Status Commit();

 private:
  StagedFile(std::string path, std::string temporary, int fd)
      : path_(std::move(path)), temporary_(std::move(temporary)), fd_(fd) {}

  std::string path_;
  std::string temporary_;  // "": committed or moved from
  int fd_;                 // -1: closed
};

// Refuses what a command must not replace: a file that it reads itself
// (`inputs`; "" is none) and a tuning log, or what belongs to one, whoever has
// it open. FailedPrecondition says which. Call it before a log is opened.
absl::Status CheckOutput(const std::string& path,
                         const std::vector<std::string>& inputs);

// Whether both names are of one file that is there.
bool IsSameFile(const std::string& path, const std::string& other);

// Both steps at once.
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes, bool executable);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
