#include "storage/sqlite/reader_pool.h"

#include <utility>

namespace regatta::sqlite {

absl::StatusOr<ReaderPool::Loan> ReaderPool::Borrow() {
  std::unique_lock lock(mutex_);
  returned_.wait(lock, [this] { return lent_ < kMaxConnections; });
  ++lent_;
  if (!idle_.empty()) {
    std::unique_ptr<Connection> db = std::move(idle_.back());
    idle_.pop_back();
    return Loan(this, std::move(db));
  }
  lock.unlock();
  auto db = Connection::Open(path_, mode_);
  if (db.ok()) return Loan(this, *std::move(db));
  lock.lock();
  --lent_;
  returned_.notify_one();
  return db.status();
}

void ReaderPool::Return(std::unique_ptr<Connection> db) {
  {
    std::lock_guard lock(mutex_);
    idle_.push_back(std::move(db));
    --lent_;
  }
  returned_.notify_one();
}

}  // namespace regatta::sqlite
