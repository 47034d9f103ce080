// Files that appear whole or not at all.
#ifndef REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
#define REGATTA_CLIENT_CLI_FILE_OUTPUT_H_

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "base/replace_file.h"

namespace regatta::cli {

// Who a file is for.
enum class FileUse {
  kData,     // whoever the umask lets read
  kProgram,  // as kData, and run
  // Its owner alone, for it tells of a lab's kernels and people; what it takes
  // the place of keeps its mode.
  kPrivate,
};

// A file that is written beside its place, in PATH.PID.new, and moved there by
// Commit, so that several files can be made ready before the first of them
// appears. Nothing is left behind when the object goes without a commit. While
// it lives the file beside is locked (flock), which tells it from what a killed
// process left.
class StagedFile {
 public:
  // Begins an empty one; what killed processes left of the same file goes.
  // FailedPrecondition with the path and the system's reason.
  static absl::StatusOr<StagedFile> Create(const std::string& path,
                                           FileUse use);
  // One that holds `bytes`. FailedPrecondition as above.
  static absl::StatusOr<StagedFile> Write(const std::string& path,
                                          std::string_view bytes, FileUse use);

  // Where the bytes are until the commit.
  const std::string& temporary() const { return temporary_; }
  // FailedPrecondition as above.
  absl::Status Append(std::string_view bytes);
  // What was written is on the disk. FailedPrecondition as above.
  absl::Status Sync();

  // Puts the file, synced, in its place, where it stays after a power failure.
  // FailedPrecondition as above; the place is unchanged then, or its folder
  // could not be synced.
  absl::Status Commit();

 private:
  StagedFile(std::string path, std::string temporary)
      : path_(std::move(path)),
        temporary_(std::move(temporary)),
        file_(std::make_unique<FileBeside>(path_, temporary_)) {}

  std::string path_;
  std::string temporary_;
  std::unique_ptr<FileBeside> file_;
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
                                 std::string_view bytes, FileUse use);

}  // namespace regatta::cli

#endif  // REGATTA_CLIENT_CLI_FILE_OUTPUT_H_
