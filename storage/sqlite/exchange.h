// LogExchange of an SQLite file.
#ifndef REGATTA_STORAGE_SQLITE_EXCHANGE_H_
#define REGATTA_STORAGE_SQLITE_EXCHANGE_H_

#include <functional>
#include <string>
#include <vector>

#include "storage/log_exchange.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/reader_pool.h"

namespace regatta::sqlite {

class SqliteExchange : public LogExchange {
 public:
  // Runs an operation on the writer's thread, durably.
  using Writer = std::function<absl::Status(
      const std::function<absl::Status(Connection&)>&)>;

  // `readers` is not owned and outlives it.
  SqliteExchange(std::string log_id, ReaderPool* readers, Writer write)
      : log_id_(std::move(log_id)),
        readers_(readers),
        write_(std::move(write)) {}

  absl::Status Export(
      const std::function<bool(const v1::LogEntry&)>& visit) const override;
  absl::StatusOr<std::vector<v1::ImportVerdict>> Import(
      absl::Span<const v1::LogEntry* const> entries,
      const ImportOptions& options) override;

 private:
  const std::string log_id_;
  ReaderPool* const readers_;
  const Writer write_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_EXCHANGE_H_
