// The one thread that writes. Callers queue; it takes all that is queued at
// once, runs it in one transaction, each operation in a savepoint of its own,
// and lets the callers go once the commit is durable. It never waits for more
// to come: while a commit runs, the next group gathers by itself.
//
// It also owns every checkpoint.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_STORAGE_SQLITE_GROUP_WRITER_H_
#define REGATTA_STORAGE_SQLITE_GROUP_WRITER_H_

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "absl/status/status.h"
#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

class GroupWriter {
 public:
  // A passive checkpoint follows a commit that leaves more than
  // `checkpoint_pages` in the write-ahead log.
  static constexpr int kCheckpointPages = 1000;

  explicit GroupWriter(std::unique_ptr<Connection> db,
                       int checkpoint_pages = kCheckpointPages);
  // Finishes what is queued, then closes the connection, which moves the whole
  // write-ahead log into the file. REQUIRES: every other connection is closed.
  ~GroupWriter();

  // Runs `operation` on the writer's thread and returns when it is durable. An
  // error of the operation undoes it alone; an error of the commit, or one that
  // makes SQLite give the transaction up (disk full), fails the whole group,
  // and nothing of it is stored. What `operation` set counts only when this
  // returns OK. It must not write through another GroupWriter call.
  absl::Status Write(const std::function<absl::Status(Connection&)>& operation);

  // Operations that wait for the group at work to end.
  size_t Queued() const;

 private:
  struct Request {
    const std::function<absl::Status(Connection&)>* operation;
    absl::Status status;
    bool done = false;
  };

  void Loop();
  void RunGroup(const std::vector<Request*>& group);
  absl::Status RunTransaction(const std::vector<Request*>& group);
  absl::Status RunOne(Request& request);
  void Checkpoint();

  std::unique_ptr<Connection> db_;
  const int checkpoint_pages_;
  bool checkpoint_failed_ = false;  // of the last try; the thread's own

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable finished_;
  std::vector<Request*> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_GROUP_WRITER_H_
