#include "storage/sqlite/upkeep.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <set>
#include <vector>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "base/status_macros.h"
#include "base/unique_fd.h"
#include "storage/paced_progress.h"
#include "storage/sqlite/integrity.h"
#include "storage/sqlite/page_copy.h"
#include "storage/sqlite/scratch_place.h"
#include "storage/sqlite/sqlite_status.h"

namespace regatta::sqlite {
namespace {

constexpr size_t kReadBytes = 1 << 20;
constexpr const char* kCopying = "copying pages";
// For which commits wait: 1 MiB.
constexpr int kWriterStepPages = 256;
constexpr std::string_view kScratch = ".backup-scratch.";
constexpr size_t kRandomDigits = 16;

// "LOG.backup-scratch.PID-RANDOM", RANDOM of 16 hexadecimal digits; beside the
// log, or in the folder for temporary files where there is no room.
absl::StatusOr<std::string> ScratchPath(const std::string& log_path) {
  namespace fs = std::filesystem;
  const fs::path file(log_path);
  std::vector<std::string> folders = {file.parent_path().string()};
  std::error_code none;
  const fs::path temporary = fs::temp_directory_path(none);
  if (!none) folders.push_back(temporary.string());
  int64_t bytes = 0;
  for (const char* part : {"", "-wal"}) {
    std::error_code missing;
    const auto size = fs::file_size(log_path + part, missing);
    if (!missing) bytes += static_cast<int64_t>(size);
  }
  ASSIGN_OR_RETURN(const fs::path folder, ScratchFolder(folders, bytes));
  uint64_t random = 0;
  sqlite3_randomness(sizeof(random), &random);
  return absl::StrCat((folder / file.filename()).string(),
                      std::string(kScratch), getpid(), "-",
                      absl::Hex(random, absl::kZeroPad16));
}

bool IsScratchOf(const std::string& log_name, std::string_view name) {
  const std::string begin = absl::StrCat(log_name, std::string(kScratch));
  if (name.substr(0, begin.size()) != begin) return false;
  name.remove_prefix(begin.size());
  const size_t dash = name.find('-');
  if (dash == 0 || dash == std::string_view::npos) return false;
  const std::string_view pid = name.substr(0, dash);
  const std::string_view random = name.substr(dash + 1);
  return std::all_of(pid.begin(), pid.end(), absl::ascii_isdigit) &&
         random.size() == kRandomDigits &&
         random.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

}  // namespace

absl::StatusOr<LogCheck> SqliteUpkeep::Check(
    const std::function<void(const LogFinding&)>& visit,
    const UpkeepProgress& progress) const {
  // What is read must be the log that is in use, not what took its place.
  RETURN_IF_ERROR(watch_->Check());
  // What was told before the check began anew is not told again.
  std::set<std::pair<std::string, std::string>> told;
  const auto tell = [&](const LogFinding& found) {
    if (told.emplace(found.where, found.what).second) visit(found);
  };
  {
    // The check leaves temporary tables.
    ASSIGN_OR_RETURN(const ReaderPool::Loan db, readers_->BorrowOwn());
    const auto check =
        CheckIntegrity(*db, tell, progress, PacedProgress::kInterval);
    if (!absl::IsAborted(check.status())) return check;
  }
  // All of it belongs to one state, which this log cannot hold for so long.
  ASSIGN_OR_RETURN(const std::string scratch, ScratchPath(path_));
  RETURN_IF_ERROR(Backup(scratch, progress));
  // A killed process leaves it to RemoveStaleScratch.
  const absl::Cleanup remove = [&scratch] { unlink(scratch.c_str()); };
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> copy,
                   Connection::Open(scratch, Connection::Mode::kImmutable));
  return CheckIntegrity(*copy, tell, progress, PacedProgress::kInterval);
}

absl::Status SqliteUpkeep::Backup(const std::string& path,
                                  const UpkeepProgress& progress) const {
  {
    // One that is open already reads on even when the file is gone.
    ASSIGN_OR_RETURN(const ReaderPool::Loan db, readers_->BorrowForLong());
    const absl::Status copied =
        db->CopyTo(path, [&](int64_t done, int64_t total) {
          return !progress || progress(kCopying, done, total);
        });
    if (!absl::IsAborted(copied) || writer_ == nullptr) return copied;
  }
  return CopyByWriter(path, progress);
}

// The writer waits for each step, and what it commits goes to the copy, too:
// only for a state that could not be held.
absl::Status SqliteUpkeep::CopyByWriter(const std::string& path,
                                        const UpkeepProgress& progress) const {
  ASSIGN_OR_RETURN(const std::unique_ptr<PageCopy> copy, PageCopy::Make(path));
  RETURN_IF_ERROR(writer_->RunBetween(
      [&](Connection& writer) { return copy->Begin(writer); }));
  const absl::Cleanup end = [&] {
    writer_->RunBetween([&](Connection&) { return copy->End(); }).IgnoreError();
  };
  bool all = false;
  while (!all) {
    RETURN_IF_ERROR(writer_->RunBetween([&](Connection&) -> absl::Status {
      ASSIGN_OR_RETURN(all, copy->Step(kWriterStepPages));
      return absl::OkStatus();
    }));
    if (progress && !progress(kCopying, copy->done(), copy->total())) {
      return absl::CancelledError("the copy was stopped");
    }
  }
  return copy->Keep();
}

absl::Status SqliteUpkeep::StreamBackup(
    const std::function<absl::Status(std::string_view bytes)>& data,
    const UpkeepProgress& progress) const {
  ASSIGN_OR_RETURN(const std::string scratch, ScratchPath(path_));
  RETURN_IF_ERROR(Backup(scratch, progress));
  const UniqueFd file(open(scratch.c_str(), O_RDONLY | O_CLOEXEC));
  const int open_error = errno;
  // It is ours alone: it goes with this process, however that ends.
  unlink(scratch.c_str());
  if (!file.valid()) return SystemStatus(open_error, "read back", scratch);
  std::vector<char> buffer(kReadBytes);
  while (true) {
    const ssize_t size = read(file.get(), buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0) return SystemStatus(errno, "read back", scratch);
    if (size == 0) return absl::OkStatus();
    RETURN_IF_ERROR(data({buffer.data(), static_cast<size_t>(size)}));
  }
}

void SqliteUpkeep::RemoveStaleScratch(const std::string& path) {
  namespace fs = std::filesystem;
  const fs::path log(path);
  // What cannot be removed only takes room: no reason to refuse the log.
  std::error_code ignored;
  for (fs::directory_iterator entry(log.parent_path(), ignored), end;
       !ignored && entry != end; entry.increment(ignored)) {
    std::error_code unsaid;
    if (entry->symlink_status(unsaid).type() == fs::file_type::regular &&
        IsScratchOf(log.filename().string(),
                    entry->path().filename().string())) {
      fs::remove(entry->path(), unsaid);
    }
  }
}

}  // namespace regatta::sqlite
