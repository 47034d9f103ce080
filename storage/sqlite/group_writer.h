// The one thread that writes. Callers queue; it takes all that is queued at
// once, runs it in one transaction, each operation in a savepoint of its own,
// and lets the callers go once the commit is durable. It never waits for more
// to come: while a commit runs, the next group gathers by itself.
//
// It also owns every checkpoint. SQLite cannot begin the write-ahead log anew
// while somebody reads an older state, so a reader that stays would let it
// grow for ever: where it passes a limit, the writer waits a moment for those
// that read, and then asks the one that has read longest to end; another one
// whenever it has grown by a sixteenth more.
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

// Pages of the write-ahead log, of 4 KiB.
struct WalLimits {
  // A passive checkpoint follows a commit that leaves more.
  int checkpoint = 1000;
  // Beyond it readers are asked to end: 256 MiB.
  int most = 65536;
};

class GroupWriter {
 public:
  // `ask_reader` asks the reader that has held its state longest, and was not
  // asked yet, to end it; false: there is none. Null: nobody else reads.
  explicit GroupWriter(std::unique_ptr<Connection> db, WalLimits limits = {},
                       std::function<bool()> ask_reader = nullptr);
  // Finishes what is queued, then closes the connection, which moves the whole
  // write-ahead log into the file. REQUIRES: every other connection is closed.
  ~GroupWriter();

  // Runs `operation` on the writer's thread and returns when it is durable. An
  // error of the operation undoes it alone; an error of the commit, or one that
  // makes SQLite give the transaction up (disk full), fails the whole group,
  // and nothing of it is stored. What `operation` set counts only when this
  // returns OK. It must not write through another GroupWriter call.
  absl::Status Write(const std::function<absl::Status(Connection&)>& operation);

  // Runs `operation` on the writer's thread in no transaction, between two
  // groups. For what is done with its connection rather than in the log.
  absl::Status RunBetween(
      const std::function<absl::Status(Connection&)>& operation);

  // Operations that wait for the group at work to end.
  size_t Queued() const;

 private:
  struct Request {
    const std::function<absl::Status(Connection&)>* operation;
    bool between = false;
    absl::Status status;
    bool done = false;
  };

  absl::Status Queue(Request request);
  void Loop();
  void RunAll(const std::vector<Request*>& requests);
  void RunGroup(const std::vector<Request*>& group);
  absl::Status RunTransaction(const std::vector<Request*>& group);
  absl::Status RunOne(Request& request);
  void Checkpoint();
  absl::Status MakeRoom();

  std::unique_ptr<Connection> db_;
  const WalLimits limits_;
  const std::function<bool()> ask_reader_;
  // The thread's own.
  bool checkpoint_failed_ = false;  // the last try
  int make_room_at_;                // pages

  mutable std::mutex mutex_;
  std::condition_variable arrived_;
  std::condition_variable finished_;
  std::vector<Request*> queue_;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_GROUP_WRITER_H_
