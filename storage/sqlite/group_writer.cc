#include "storage/sqlite/group_writer.h"

#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace regatta::sqlite {

GroupWriter::GroupWriter(std::unique_ptr<Connection> db, int checkpoint_pages)
    : db_(std::move(db)),
      checkpoint_pages_(checkpoint_pages),
      thread_([this] { Loop(); }) {}

GroupWriter::~GroupWriter() {
  {
    std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  arrived_.notify_one();
  thread_.join();
}

absl::Status GroupWriter::Write(
    const std::function<absl::Status(Connection&)>& operation) {
  Request request{.operation = &operation};
  std::unique_lock lock(mutex_);
  queue_.push_back(&request);
  arrived_.notify_one();
  finished_.wait(lock, [&] { return request.done; });
  return request.status;
}

size_t GroupWriter::Queued() const {
  std::lock_guard lock(mutex_);
  return queue_.size();
}

void GroupWriter::Loop() {
  std::unique_lock lock(mutex_);
  while (true) {
    arrived_.wait(lock, [this] { return stopping_ || !queue_.empty(); });
    if (queue_.empty()) return;
    const std::vector<Request*> group = std::exchange(queue_, {});
    lock.unlock();
    RunGroup(group);
    lock.lock();
    for (Request* request : group) request->done = true;
    finished_.notify_all();
    lock.unlock();
    Checkpoint();
    lock.lock();
  }
}

void GroupWriter::RunGroup(const std::vector<Request*>& group) {
  const absl::Status status = RunTransaction(group);
  if (status.ok()) return;
  if (db_->InTransaction()) (void)db_->Run("ROLLBACK");
  for (Request* request : group) {
    // An operation that failed by itself keeps its own reason.
    if (request->status.ok()) request->status = status;
  }
}

absl::Status GroupWriter::RunTransaction(const std::vector<Request*>& group) {
  RETURN_IF_ERROR(db_->Run("BEGIN IMMEDIATE"));
  for (Request* request : group) RETURN_IF_ERROR(RunOne(*request));
  return db_->Run("COMMIT");
}

// An error: the transaction cannot go on.
absl::Status GroupWriter::RunOne(Request& request) {
  RETURN_IF_ERROR(db_->Run("SAVEPOINT operation"));
  request.status = (*request.operation)(*db_);
  if (!request.status.ok()) {
    if (!db_->InTransaction()) return request.status;
    RETURN_IF_ERROR(db_->Run("ROLLBACK TO operation"));
  }
  return db_->Run("RELEASE operation");
}

void GroupWriter::Checkpoint() {
  if (db_->WalPages() <= checkpoint_pages_) return;
  const absl::Status status = db_->PassiveCheckpoint();
  // What was committed is safe in the write-ahead log; the next commit tries
  // again. One line per run of failures is enough.
  if (!status.ok() && !checkpoint_failed_) {
    LOG(kWarning) << "checkpoint failed: " << status.ToString();
  }
  checkpoint_failed_ = !status.ok();
}

}  // namespace regatta::sqlite
