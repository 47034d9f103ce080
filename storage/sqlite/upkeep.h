// LogUpkeep of an SQLite file.
#ifndef REGATTA_STORAGE_SQLITE_UPKEEP_H_
#define REGATTA_STORAGE_SQLITE_UPKEEP_H_

#include <string>
#include <utility>

#include "storage/log_upkeep.h"
#include "storage/sqlite/connection.h"
#include "storage/sqlite/file_watch.h"
#include "storage/sqlite/group_writer.h"
#include "storage/sqlite/reader_pool.h"

namespace regatta::sqlite {

class SqliteUpkeep : public LogUpkeep {
 public:
  // Not owned, and outlive it. `writer` is null for a log that is only looked
  // at.
  SqliteUpkeep(std::string path, ReaderPool* readers, GroupWriter* writer,
               FileWatch* watch)
      : path_(std::move(path)),
        readers_(readers),
        writer_(writer),
        watch_(watch) {}

  absl::StatusOr<LogCheck> Check(
      const std::function<void(const LogFinding&)>& visit,
      const UpkeepProgress& progress) const override;
  absl::Status Backup(const std::string& path,
                      const UpkeepProgress& progress) const override;
  absl::Status StreamBackup(
      const std::function<absl::Status(std::string_view bytes)>& data,
      const UpkeepProgress& progress) const override;

  // Removes what processes that were killed left of StreamBackup beside the log
  // at `path`. REQUIRES: its exclusive FileLock.
  static void RemoveStaleScratch(const std::string& path);

 private:
  absl::Status CopyByWriter(const std::string& path,
                            const UpkeepProgress& progress) const;

  const std::string path_;
  ReaderPool* const readers_;
  GroupWriter* const writer_;
  FileWatch* const watch_;
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_UPKEEP_H_
