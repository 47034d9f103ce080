#include "storage/sqlite/connection.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "base/status_macros.h"
#include "storage/sqlite/sqlite_status.h"

namespace regatta::sqlite {
namespace {

// Waits only for the short locks of another connection of ours.
constexpr int kBusyTimeoutMs = 5000;
// Between two looks at whether a statement may go on: steps of SQLite's
// machine, some of them pages that are read from a disk.
constexpr int kWatchSteps = 200;

// "file:" URI of a path: the characters that a URI gives a meaning are escaped.
std::string FileUri(const std::string& path, std::string_view query) {
  std::string uri = "file:";
  for (const char c : path) {
    if (c == '%' || c == '?' || c == '#') {
      const unsigned char byte = static_cast<unsigned char>(c);
      absl::StrAppend(&uri, "%", absl::Hex(byte, absl::kZeroPad2));
    } else {
      uri.push_back(c);
    }
  }
  return absl::StrCat(uri, "?", std::string(query));
}

}  // namespace

Statement::Statement(sqlite3_stmt* stmt, bool* in_use, Connection* db)
    : stmt_(stmt), in_use_(in_use), db_(db) {}

Statement::Statement(Statement&& other) noexcept
    : stmt_(std::exchange(other.stmt_, nullptr)),
      in_use_(other.in_use_),
      db_(other.db_),
      bind_error_(other.bind_error_) {}

Statement::~Statement() {
  if (stmt_ == nullptr) return;
  sqlite3_reset(stmt_);
  sqlite3_clear_bindings(stmt_);
  *in_use_ = false;
}

void Statement::Note(int code) {
  CHECK(code != SQLITE_RANGE) << "no such parameter in " << sqlite3_sql(stmt_);
  if (code != SQLITE_OK) bind_error_ = code;
}

void Statement::Bind(int index, int64_t value) {
  Note(sqlite3_bind_int64(stmt_, index, value));
}
void Statement::Bind(int index, double value) {
  Note(sqlite3_bind_double(stmt_, index, value));
}
void Statement::Bind(int index, std::string_view value) {
  // A null pointer would bind NULL instead of the empty text.
  Note(sqlite3_bind_text64(stmt_, index, value.empty() ? "" : value.data(),
                           value.size(), SQLITE_TRANSIENT, SQLITE_UTF8));
}
void Statement::Bind(int index, Blob value) {
  const std::string_view bytes = value.bytes;
  Note(sqlite3_bind_blob64(stmt_, index, bytes.empty() ? "" : bytes.data(),
                           bytes.size(), SQLITE_TRANSIENT));
}
void Statement::Bind(int index, std::nullopt_t) {
  Note(sqlite3_bind_null(stmt_, index));
}

absl::StatusOr<bool> Statement::Step() {
  if (bind_error_ != SQLITE_OK) {
    return db_->Error(bind_error_, sqlite3_errstr(bind_error_));
  }
  // Many short statements add up to a long read.
  if (db_->asked() && !db_->ending_) return db_->Asked();
  const int code = sqlite3_step(stmt_);
  if (code == SQLITE_ROW) return true;
  if (code == SQLITE_DONE) return false;
  return db_->Error(code);
}

int64_t Statement::Int(int column) const {
  return sqlite3_column_int64(stmt_, column);
}
double Statement::Real(int column) const {
  return sqlite3_column_double(stmt_, column);
}
std::string_view Statement::Bytes(int column) const {
  const void* data = sqlite3_column_blob(stmt_, column);
  const int size = sqlite3_column_bytes(stmt_, column);
  return data == nullptr
             ? std::string_view()
             : std::string_view(static_cast<const char*>(data), size);
}
bool Statement::IsNull(int column) const {
  return sqlite3_column_type(stmt_, column) == SQLITE_NULL;
}

absl::StatusOr<std::unique_ptr<Connection>> Connection::Open(
    const std::string& path, Mode mode) {
  int flags = SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI | SQLITE_OPEN_EXRESCODE;
  std::string uri = FileUri(path, "");
  switch (mode) {
    case Mode::kReadWrite:
      flags |= SQLITE_OPEN_READWRITE;
      break;
    case Mode::kCreate:
      flags |= SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE;
      break;
    case Mode::kReadOnly:
      flags |= SQLITE_OPEN_READONLY;
      break;
    case Mode::kImmutable:
      flags |= SQLITE_OPEN_READONLY;
      uri = FileUri(path, "immutable=1");
      break;
  }
  sqlite3* db = nullptr;
  const int code = sqlite3_open_v2(uri.c_str(), &db, flags, nullptr);
  CHECK(db != nullptr) << "out of memory for a connection";
  std::unique_ptr<Connection> connection(new Connection(db, path));
  if (code != SQLITE_OK) return connection->Error(code);
  RETURN_IF_ERROR(connection->Configure(mode));
  return connection;
}

absl::Status Connection::Configure(Mode mode) {
  sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  // Checkpoints are the writer's, and asked for: a second connection that
  // checkpoints meets the WAL-reset bug of releases before 3.51.3. The hook
  // takes the place of the automatic checkpoint.
  sqlite3_wal_hook(
      db_,
      [](void* self, sqlite3*, const char*, int pages) {
        static_cast<Connection*>(self)->wal_pages_ = pages;
        return SQLITE_OK;
      },
      this);
  sqlite3_progress_handler(
      db_, kWatchSteps,
      [](void* self) { return static_cast<Connection*>(self)->GoOn() ? 0 : 1; },
      this);
  if (mode == Mode::kReadOnly || mode == Mode::kImmutable) {
    sqlite3_db_config(db_, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
  }
  // The file may be damaged on purpose: nothing in it may run or be trusted.
  sqlite3_db_config(db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
  sqlite3_db_config(db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
  // These touch no file.
  RETURN_IF_ERROR(
      Execute("PRAGMA cell_size_check = ON;"
              "PRAGMA foreign_keys = OFF;"
              "PRAGMA temp_store = MEMORY;"));
  // KiB at most. What a write touches in a large log lies all over the file.
  // A reader's pages are void after the next commit, which makes more a waste.
  RETURN_IF_ERROR(Execute(mode == Mode::kReadOnly
                              ? "PRAGMA cache_size = -8192"
                              : "PRAGMA cache_size = -65536"));
  if (mode == Mode::kReadWrite) {
    RETURN_IF_ERROR(
        Execute("PRAGMA synchronous = FULL;"
                "PRAGMA journal_size_limit = 67108864;"));
  }
  return absl::OkStatus();
}

Connection::~Connection() {
  for (auto& [sql, prepared] : prepared_) {
    CHECK(!prepared.in_use) << "closed while running " << sql;
    sqlite3_finalize(prepared.stmt);
  }
  const int code = sqlite3_close(db_);
  CHECK(code == SQLITE_OK) << "closing " << path_ << ": "
                           << sqlite3_errstr(code);
}

absl::StatusOr<Statement> Connection::Prepare(const char* sql) {
  Prepared& prepared = prepared_[sql];
  CHECK(!prepared.in_use) << "runs already: " << sql;
  if (prepared.stmt == nullptr) {
    const int code = sqlite3_prepare_v3(db_, sql, -1, SQLITE_PREPARE_PERSISTENT,
                                        &prepared.stmt, nullptr);
    if (code != SQLITE_OK) return Error(code);
  }
  prepared.in_use = true;
  return Statement(prepared.stmt, &prepared.in_use, this);
}

absl::Status Connection::Execute(const std::string& script) {
  const int code = sqlite3_exec(db_, script.c_str(), nullptr, nullptr, nullptr);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<int64_t> Connection::Number(const char* sql) {
  ASSIGN_OR_RETURN(Statement statement, Query(sql));
  ASSIGN_OR_RETURN(const bool row, statement.Step());
  CHECK(row) << "no row from " << sql;
  return statement.Int(0);
}

absl::Status Connection::PassiveCheckpoint() {
  int left = 0, done = 0;
  const int code = sqlite3_wal_checkpoint_v2(
      db_, nullptr, SQLITE_CHECKPOINT_PASSIVE, &left, &done);
  return code == SQLITE_OK ? absl::OkStatus() : Error(code);
}

absl::StatusOr<bool> Connection::RestartCheckpoint(absl::Duration wait) {
  sqlite3_busy_timeout(db_, static_cast<int>(absl::ToInt64Milliseconds(wait)));
  int left = 0, done = 0;
  const int code = sqlite3_wal_checkpoint_v2(
      db_, nullptr, SQLITE_CHECKPOINT_RESTART, &left, &done);
  sqlite3_busy_timeout(db_, kBusyTimeoutMs);
  if (code == SQLITE_OK) return true;
  if ((code & 0xff) == SQLITE_BUSY) return false;
  return Error(code);
}

bool Connection::GoOn() const {
  return ending_ || (!asked_ && (watch_ == nullptr || (*watch_)()));
}

absl::Status Connection::Asked() const {
  return absl::AbortedError(
      absl::StrCat(path_,
                   ": this read held a state of the tuning log for so "
                   "long that the write-ahead log passed its limit; "
                   "try again"));
}

absl::Status Connection::Error(int code) const {
  return Error(code, sqlite3_errmsg(db_));
}

absl::Status Connection::Error(int code, const char* message) const {
  if ((code & 0xff) == SQLITE_INTERRUPT && asked()) return Asked();
  return SqliteStatus(code, sqlite3_system_errno(db_), message, path_);
}

StepWatch::StepWatch(Connection& db, std::function<bool()> go_on)
    : db_(db), go_on_(std::move(go_on)) {
  db_.watch_ = &go_on_;
}

StepWatch::~StepWatch() { db_.watch_ = nullptr; }

absl::StatusOr<ReadTransaction> ReadTransaction::Begin(Connection& db) {
  RETURN_IF_ERROR(db.Run("BEGIN"));
  return ReadTransaction(&db);
}

ReadTransaction::~ReadTransaction() {
  if (db_ == nullptr || !db_->InTransaction()) return;
  // A read transaction has nothing to lose: its end cannot fail.
  db_->ending_ = true;
  (void)db_->Run("COMMIT");
  db_->ending_ = false;
  db_->ForgetAsk();
}

}  // namespace regatta::sqlite
