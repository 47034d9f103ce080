// SQLite's file layer with faults: the Nth call that changes a file fails, or
// this process is killed at it. In force for every connection opened while it
// lives.
#ifndef REGATTA_TESTS_STORAGE_FAULT_VFS_H_
#define REGATTA_TESTS_STORAGE_FAULT_VFS_H_

#include <sqlite3.h>

#include <cstdint>

#include "tests/storage/disk_model.h"

namespace regatta::testing {

enum class FaultAction {
  kFailWrites,  // with Fault::code, from the Nth write on
  kFailSyncs,   // the same for syncs
  kKill,        // SIGKILL before the Nth write or sync
  // A write, sync, truncation, removal or opening of a file, each with an error
  // of its own.
  kFailCall,   // the Nth alone
  kFailCalls,  // from the Nth on: the machine has stopped
};

struct Fault {
  FaultAction action = FaultAction::kFailWrites;
  int64_t nth = 1;         // counted from the call of Arm
  int code = SQLITE_FULL;  // of kFailWrites and kFailSyncs
  bool half = false;       // a write that fails alone leaves its first half
  // Only files of these kinds: SQLITE_OPEN_MAIN_DB, SQLITE_OPEN_WAL, ...
  int file_kinds =
      SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;
};

// One at a time. Thread-safe.
class FaultVfs {
 public:
  // Becomes the default. With a `model`, which must outlive it, that one is
  // told of everything, and files are not really synced.
  explicit FaultVfs(DiskModel* model = nullptr);
  ~FaultVfs();  // REQUIRES: connections opened since are closed

  static void Arm(const Fault& fault);
  static void Disarm();
  // Whether the armed fault has struck.
  static bool Struck();
  // Calls that the fault would have counted since Arm.
  static int64_t Seen();
  // Syncs of write-ahead logs so far, and writes to them since the last.
  static int64_t WalSyncs();
  static int64_t UnsyncedWalWrites();
};

}  // namespace regatta::testing

#endif  // REGATTA_TESTS_STORAGE_FAULT_VFS_H_
