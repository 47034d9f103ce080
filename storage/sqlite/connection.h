// One SQLite connection and its prepared statements.
//
// Thread safety: a connection and the statements made from it belong to one
// thread at a time; AskToEnd may be called from any.
#ifndef REGATTA_STORAGE_SQLITE_CONNECTION_H_
#define REGATTA_STORAGE_SQLITE_CONNECTION_H_

#include <sqlite3.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace regatta::sqlite {

class Connection;

// Bytes rather than text, for Bind.
struct Blob {
  std::string_view bytes;
};

// A running statement, borrowed from its connection; gives it back when
// destroyed. The connection must outlive it.
class Statement {
 public:
  Statement(sqlite3_stmt* stmt, bool* in_use, Connection* db);
  Statement(Statement&& other) noexcept;
  Statement& operator=(Statement&&) = delete;
  ~Statement();

  // Parameters count from 1. Bytes are copied.
  void Bind(int index, int64_t value);
  void Bind(int index, int value) { Bind(index, int64_t{value}); }
  void Bind(int index, bool value) { Bind(index, int64_t{value}); }
  void Bind(int index, double value);
  void Bind(int index, std::string_view value);
  void Bind(int index, const std::string& value) {
    Bind(index, std::string_view(value));
  }
  void Bind(int index, Blob value);
  void Bind(int index, std::nullopt_t);
  template <typename T>
  void Bind(int index, const std::optional<T>& value) {
    if (value.has_value()) {
      Bind(index, *value);
    } else {
      Bind(index, std::nullopt);
    }
  }

  // True: a row is there to read. False: done. Aborted: see
  // Connection::AskToEnd.
  absl::StatusOr<bool> Step();

  // Columns count from 0. Text stays valid until the next Step.
  int64_t Int(int column) const;
  double Real(int column) const;
  std::string_view Bytes(int column) const;  // text or blob
  std::string Text(int column) const { return std::string(Bytes(column)); }
  bool IsNull(int column) const;

 private:
  void Note(int code);

  sqlite3_stmt* stmt_;
  bool* in_use_;
  Connection* db_;
  int bind_error_ = SQLITE_OK;
};

class Connection {
 public:
  enum class Mode {
    kReadWrite,  // the file must exist
    kCreate,     // makes the file
    kReadOnly,   // never checkpoints, not even when closed
    // As kReadOnly, of a file that nobody changes: touches no other file.
    kImmutable,
  };

  static absl::StatusOr<std::unique_ptr<Connection>> Open(
      const std::string& path, Mode mode);
  ~Connection();
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Compiles `sql` once, binds `args` in order. `sql` must be a literal: it is
  // the statement's name. One statement of a text can run at a time.
  template <typename... Args>
  absl::StatusOr<Statement> Query(const char* sql, const Args&... args) {
    auto statement = Prepare(sql);
    if (statement.ok()) {
      int index = 0;
      (statement->Bind(++index, args), ...);
    }
    return statement;
  }

  // Runs a statement whose rows, if any, do not matter.
  template <typename... Args>
  absl::Status Run(const char* sql, const Args&... args) {
    auto statement = Query(sql, args...);
    if (!statement.ok()) return statement.status();
    return statement->Step().status();
  }

  // Runs every statement of a script.
  absl::Status Execute(const std::string& script);
  // The one number that `sql` yields ("PRAGMA user_version").
  absl::StatusOr<int64_t> Number(const char* sql);

  int64_t LastInsertId() const { return sqlite3_last_insert_rowid(db_); }
  int64_t Changes() const { return sqlite3_changes64(db_); }
  // False when an error has rolled the whole transaction back.
  bool InTransaction() const { return sqlite3_get_autocommit(db_) == 0; }
  // Pages in the write-ahead log after this connection's last commit.
  int WalPages() const { return wal_pages_; }
  // Copies the database, as of one moment, to a new file at `path`, and syncs
  // it; Aborted when it is asked to end. `progress` is told of pages done and
  // of all; false stops it with Cancelled. Nothing is left at `path` after an
  // error, but for a file that was there before.
  absl::Status CopyTo(
      const std::string& path,
      const std::function<bool(int64_t done, int64_t total)>& progress);
  // Moves what it can from the write-ahead log to the file, without waiting.
  absl::Status PassiveCheckpoint();
  // Moves all of it, so that the next commit begins it anew. Waits so long for
  // readers of an older state, and for those that read what is in it; nobody
  // commits meanwhile. False: some were still there.
  absl::StatusOr<bool> RestartCheckpoint(absl::Duration wait);

  // Asks whoever reads to end the state that is held: from now on, until the
  // read transaction ends or ForgetAsk, statements fail with Aborted, within a
  // millisecond or so of their work.
  void AskToEnd() { asked_ = true; }
  void ForgetAsk() { asked_ = false; }
  bool asked() const { return asked_; }
  // Why a read ended that was asked to.
  absl::Status Asked() const;

 private:
  friend class PageCopy;
  friend class ReadTransaction;
  friend class Statement;
  friend class StepWatch;
  struct Prepared {
    sqlite3_stmt* stmt = nullptr;
    bool in_use = false;
  };

  Connection(sqlite3* db, std::string path) : db_(db), path_(std::move(path)) {}
  absl::StatusOr<Statement> Prepare(const char* sql);
  absl::Status Configure(Mode mode);
  absl::Status Error(int code) const;
  absl::Status Error(int code, const char* message) const;
  bool GoOn() const;

  sqlite3* db_;
  std::string path_;
  std::atomic<bool> asked_ = false;
  bool ending_ = false;  // a read transaction, whatever is asked
  const std::function<bool()>* watch_ = nullptr;  // of a StepWatch
  int wal_pages_ = 0;
  std::unordered_map<const char*, Prepared> prepared_;
};

// While it lives, the statements of `db` ask `go_on` every millisecond or so of
// their work, in the middle of a check of all pages, too. False ends the
// statement with Cancelled. One at a time of a connection, on its thread.
class StepWatch {
 public:
  // `go_on` does not use the connection.
  StepWatch(Connection& db, std::function<bool()> go_on);
  ~StepWatch();
  StepWatch(const StepWatch&) = delete;
  StepWatch& operator=(const StepWatch&) = delete;

 private:
  Connection& db_;
  const std::function<bool()> go_on_;
};

// A read transaction: every query until it is destroyed sees one state.
class ReadTransaction {
 public:
  static absl::StatusOr<ReadTransaction> Begin(Connection& db);
  ReadTransaction(ReadTransaction&& other) noexcept : db_(other.db_) {
    other.db_ = nullptr;
  }
  ReadTransaction& operator=(ReadTransaction&&) = delete;
  ~ReadTransaction();

 private:
  explicit ReadTransaction(Connection* db) : db_(db) {}
  Connection* db_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_CONNECTION_H_
