// Read-only connections, each lent to one thread at a time. None of them ever
// checkpoints.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_STORAGE_SQLITE_READER_POOL_H_
#define REGATTA_STORAGE_SQLITE_READER_POOL_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/held_states.h"

namespace regatta::sqlite {

class ReaderPool {
 public:
  static constexpr int kMaxConnections = 4;

  // What a connection is lent for.
  enum class Use { kShort, kLong, kOwn };

  // A connection on loan; goes back when destroyed. Whatever it is lent for, it
  // may be asked to end the state that it holds (Connection::AskToEnd).
  class Loan {
   public:
    Loan(ReaderPool* pool, std::unique_ptr<Connection> db, Use use)
        : pool_(pool), db_(std::move(db)), use_(use) {
      pool_->held_->Add(db_.get());
    }
    Loan(Loan&&) = default;
    Loan& operator=(Loan&&) = delete;
    ~Loan() {
      if (db_ != nullptr) pool_->Return(std::move(db_), use_);
    }
    Connection& operator*() const { return *db_; }
    Connection* operator->() const { return db_.get(); }

   private:
    ReaderPool* pool_;
    std::unique_ptr<Connection> db_;
    Use use_;
  };

  // `held` hears of what is lent; not owned, outlives it.
  ReaderPool(std::string path, Connection::Mode mode, HeldStates* held)
      : path_(std::move(path)), mode_(mode), held_(held) {}

  // Waits while all are lent. A thread must not hold two.
  absl::StatusOr<Loan> Borrow();
  // Of no number: for reads that take long, which those that Borrow shall not
  // wait for. Whoever starts such reads bounds them.
  absl::StatusOr<Loan> BorrowForLong();
  // Likewise, of the file that is there now, and closed afterwards: for reads
  // that leave something on their connection.
  absl::StatusOr<Loan> BorrowOwn();

 private:
  // One that is open already, if any: it reads on when the file is gone.
  absl::StatusOr<std::unique_ptr<Connection>> TakeOrOpen();
  void Return(std::unique_ptr<Connection> db, Use use);

  const std::string path_;
  const Connection::Mode mode_;
  HeldStates* const held_;
  std::mutex mutex_;
  std::condition_variable returned_;
  std::vector<std::unique_ptr<Connection>> idle_;
  int lent_ = 0;  // for short reads
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_READER_POOL_H_
