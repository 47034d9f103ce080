// SQLite's file layer with faults: fails, or kills this process at, the Nth
// write or sync. In force for every connection opened while it lives.
#ifndef REGATTA_TESTS_STORAGE_FAULT_VFS_H_
#define REGATTA_TESTS_STORAGE_FAULT_VFS_H_

#include <sqlite3.h>

#include <cstdint>

namespace regatta::testing {

enum class FaultAction {
  kFailWrites,  // with Fault::code, from the Nth write on
  kFailSyncs,   // the same for syncs
  kKill,        // SIGKILL before the Nth write or sync
};

struct Fault {
  FaultAction action = FaultAction::kFailWrites;
  int64_t nth = 1;  // counted from the call of Arm
  int code = SQLITE_FULL;
  // Only files of these kinds: SQLITE_OPEN_MAIN_DB, SQLITE_OPEN_WAL, ...
  int file_kinds =
      SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
};

// One at a time. Thread-safe.
class FaultVfs {
 public:
  FaultVfs();   // becomes the default
  ~FaultVfs();  // REQUIRES: connections opened since are closed

  static void Arm(const Fault& fault);
  static void Disarm();
  // Whether the armed fault has struck.
  static bool Struck();
  // Syncs of write-ahead logs so far, and writes to them since the last.
  static int64_t WalSyncs();
  static int64_t UnsyncedWalWrites();
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_STORAGE_FAULT_VFS_H_
