#include "storage/sqlite/reader_pool.h"

#include <utility>

#include "base/status_macros.h"

namespace regatta::sqlite {

absl::StatusOr<ReaderPool::Loan> ReaderPool::Borrow() {
  {
    std::unique_lock lock(mutex_);
    returned_.wait(lock, [this] { return lent_ < kMaxConnections; });
    ++lent_;
  }
  auto db = TakeOrOpen();
  if (db.ok()) return Loan(this, *std::move(db), Use::kShort);
  {
    std::lock_guard lock(mutex_);
    --lent_;
  }
  returned_.notify_one();
  return db.status();
}

absl::StatusOr<ReaderPool::Loan> ReaderPool::BorrowForLong() {
  ASSIGN_OR_RETURN(auto db, TakeOrOpen());
  return Loan(this, std::move(db), Use::kLong);
}

absl::StatusOr<ReaderPool::Loan> ReaderPool::BorrowOwn() {
  ASSIGN_OR_RETURN(auto db, Connection::Open(path_, mode_));
  return Loan(this, std::move(db), Use::kOwn);
}

absl::StatusOr<std::unique_ptr<Connection>> ReaderPool::TakeOrOpen() {
  {
    std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<Connection> db = std::move(idle_.back());
      idle_.pop_back();
      return db;
    }
  }
  return Connection::Open(path_, mode_);
}

void ReaderPool::Return(std::unique_ptr<Connection> db, Use use) {
  held_->Remove(db.get());
  if (use == Use::kOwn) return;
  {
    std::lock_guard lock(mutex_);
    // Beyond what may be asked for at once, long reads only left it here.
    if (idle_.size() < kMaxConnections) idle_.push_back(std::move(db));
    if (use == Use::kShort) --lent_;
  }
  returned_.notify_one();
}

}  // namespace regatta::sqlite
