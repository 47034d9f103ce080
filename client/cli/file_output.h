// Files that appear whole or not at all.
#ifndef REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
#define REGATTA_CLIENT_CLI_FILE_OUTPUT_H_

#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace regatta::cli {

// A file that is written beside its place and moved there by Commit, so that
// several files can be made ready before the first of them appears. Nothing is
// left behind when the object goes without a commit.
class StagedFile {
 public:
  // FailedPrecondition with the path and the system's reason.
  static absl::StatusOr<StagedFile> Write(const std::string& path,
                                          std::string_view bytes,
                                          bool executable);
  StagedFile(StagedFile&& other) noexcept
      : path_(std::move(other.path_)),
        temporary_(std::exchange(other.temporary_, "")) {}
  ~StagedFile();

  // FailedPrecondition as above; the place is unchanged then.
  absl::Status Commit();

 private:
  StagedFile(std::string path, std::string temporary)
      : path_(std::move(path)), temporary_(std::move(temporary)) {}

  std::string path_;
  std::string temporary_;  // "": committed or moved from
};

// Both steps at once.
absl::Status WriteFileAtomically(const std::string& path,
                                 std::string_view bytes, bool executable);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
