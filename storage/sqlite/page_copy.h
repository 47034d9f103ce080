// A copy of a database, page by page, in a file of its own.
//
// As of one moment: either the source holds one state while it is copied, or
// the source is the one connection that writes. SQLite then brings what was
// copied up to date with every commit, so that nothing is held between two
// steps, and the copy is of the moment of its last one.
#ifndef REGATTA_STORAGE_SQLITE_PAGE_COPY_H_
#define REGATTA_STORAGE_SQLITE_PAGE_COPY_H_

#include <sqlite3.h>

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

// Not thread-safe. Begin, Step and End use the source: on its thread.
class PageCopy {
 public:
  // Makes the file, for its owner alone; it must not exist. It goes with this
  // object unless Keep was called.
  static absl::StatusOr<std::unique_ptr<PageCopy>> Make(
      const std::string& path);
  // REQUIRES: ended.
  ~PageCopy();
  PageCopy(const PageCopy&) = delete;
  PageCopy& operator=(const PageCopy&) = delete;

  // `from` is in no transaction that writes and stays until End.
  absl::Status Begin(Connection& from);
  // Copies so many pages. True: those were the last, and it has ended.
  absl::StatusOr<bool> Step(int pages);
  // Ends the copying, whole or not. Does nothing when there is none.
  absl::Status End();

  // Of the last step.
  int64_t done() const { return done_; }
  int64_t total() const { return total_; }

  // Closes and syncs the file, which then stays. REQUIRES: a step was the last.
  absl::Status Keep();

 private:
  explicit PageCopy(std::string path) : path_(std::move(path)) {}
  absl::Status Open();
  absl::Status Error(int code) const;

  const std::string path_;
  sqlite3* to_ = nullptr;
  sqlite3_backup* backup_ = nullptr;
  int64_t done_ = 0, total_ = 0;
  bool kept_ = false;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_PAGE_COPY_H_
