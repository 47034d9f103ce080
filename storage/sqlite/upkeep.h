// LogUpkeep of an SQLite file.
#ifndef REGATTA_STORAGE_SQLITE_UPKEEP_H_
#define REGATTA_STORAGE_SQLITE_UPKEEP_H_

#include <string>

#include "storage/log_upkeep.h"
#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

class SqliteUpkeep : public LogUpkeep {
 public:
  SqliteUpkeep(std::string path, Connection::Mode reader_mode)
      : path_(std::move(path)), reader_mode_(reader_mode) {}

  absl::StatusOr<int64_t> Check(
      const std::function<void(const LogFinding&)>& visit,
      const UpkeepProgress& progress) const override;

 private:
  const std::string path_;
  const Connection::Mode reader_mode_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_UPKEEP_H_
