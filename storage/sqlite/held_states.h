// Which connections are lent, and may hold a state of the log: SQLite cannot
// begin its write-ahead log anew while somebody reads what is in it.
//
// Thread safety: all methods may be called from any thread.
#ifndef REGATTA_STORAGE_SQLITE_HELD_STATES_H_
#define REGATTA_STORAGE_SQLITE_HELD_STATES_H_

#include <algorithm>
#include <mutex>
#include <vector>

#include "storage/sqlite/connection.h"

namespace regatta::sqlite {

class HeldStates {
 public:
  // `db` is not owned and stays until it is removed.
  void Add(Connection* db) {
    std::lock_guard lock(mutex_);
    lent_.push_back(db);
  }
  void Remove(Connection* db) {
    std::lock_guard lock(mutex_);
    lent_.erase(std::find(lent_.begin(), lent_.end(), db));
    db->ForgetAsk();
  }

  // Asks the one that was lent first, of those that were not asked yet, to end
  // its reads (Connection::AskToEnd). False: there is none.
  bool AskOldest() {
    std::lock_guard lock(mutex_);
    for (Connection* db : lent_) {
      if (db->asked()) continue;
      db->AskToEnd();
      return true;
    }
    return false;
  }

 private:
  std::mutex mutex_;
  std::vector<Connection*> lent_;  // in the order of lending
};

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_HELD_STATES_H_
