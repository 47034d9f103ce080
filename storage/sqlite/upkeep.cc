#include "storage/sqlite/upkeep.h"

#include <memory>

#include "base/status_macros.h"
#include "storage/sqlite/integrity.h"

namespace regatta::sqlite {

absl::StatusOr<int64_t> SqliteUpkeep::Check(
    const std::function<void(const LogFinding&)>& visit,
    const UpkeepProgress& progress) const {
  // Of its own: the check takes long, and leaves temporary tables.
  ASSIGN_OR_RETURN(const std::unique_ptr<Connection> db,
                   Connection::Open(path_, reader_mode_));
  return CheckIntegrity(*db, visit, progress);
}

absl::Status SqliteUpkeep::Backup(const std::string& path,
                                  const UpkeepProgress& progress) const {
  // One that is open already reads on even when the file is gone.
  ASSIGN_OR_RETURN(const ReaderPool::Loan db, readers_->Borrow());
  return db->CopyTo(path, [&](int64_t done, int64_t total) {
    return !progress || progress("copying pages", done, total);
  });
}

}  // namespace regatta::sqlite
