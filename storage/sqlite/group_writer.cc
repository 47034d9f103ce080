#include "storage/sqlite/group_writer.h"

#include <utility>

#include "base/log.h"
#include "base/status_macros.h"

namespace regatta::sqlite {

namespace {

// For readers that read only for a moment, and for those that were asked. Twice
// of it is what an append may take longer for.
constexpr absl::Duration kReadersWait = absl::Milliseconds(50);

}  // namespace

GroupWriter::GroupWriter(std::unique_ptr<Connection> db, WalLimits limits,
                         std::function<bool()> ask_reader)
    : db_(std::move(db)),
      limits_(limits),
      ask_reader_(std::move(ask_reader)),
      make_room_at_(limits.most),
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
  return Queue({.operation = &operation});
}

absl::Status GroupWriter::RunBetween(
    const std::function<absl::Status(Connection&)>& operation) {
  return Queue({.operation = &operation, .between = true});
}

absl::Status GroupWriter::Queue(Request request) {
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
    RunAll(group);
    lock.lock();
    for (Request* request : group) request->done = true;
    finished_.notify_all();
    lock.unlock();
    Checkpoint();
    lock.lock();
  }
}

void GroupWriter::RunAll(const std::vector<Request*>& requests) {
  std::vector<Request*> group;
  for (Request* request : requests) {
    if (!request->between) group.push_back(request);
  }
  if (!group.empty()) RunGroup(group);
  for (Request* request : requests) {
    if (request->between) request->status = (*request->operation)(*db_);
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
  const int pages = db_->WalPages();
  if (pages <= limits_.most) make_room_at_ = limits_.most;
  if (pages <= limits_.checkpoint) return;
  absl::Status status = db_->PassiveCheckpoint();
  if (status.ok() && pages > make_room_at_) {
    make_room_at_ = pages + limits_.most / 16;
    status = MakeRoom();
  }
  // What was committed is safe in the write-ahead log; the next commit tries
  // again. One line per run of failures is enough.
  if (!status.ok() && !checkpoint_failed_) {
    LOG(kWarning) << "checkpoint failed: " << status.ToString();
  }
  checkpoint_failed_ = !status.ok();
}

absl::Status GroupWriter::MakeRoom() {
  ASSIGN_OR_RETURN(bool made, db_->RestartCheckpoint(kReadersWait));
  if (made || !ask_reader_ || !ask_reader_()) return absl::OkStatus();
  ASSIGN_OR_RETURN(made, db_->RestartCheckpoint(kReadersWait));
  LOG(kWarning)
      << LogEvent("log_reader_asked_to_end")
      << "a read held a state of the tuning log until the write-ahead "
         "log had "
      << db_->WalPages() << " pages, and was asked to end"
      << (made ? "" : "; something still reads");
  return absl::OkStatus();
}

}  // namespace regatta::sqlite
