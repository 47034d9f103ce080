#include "tests/storage/fault_vfs.h"

#include <signal.h>
#include <unistd.h>

#include <atomic>
#include <mutex>

namespace regatta::testing {
namespace {

constexpr char kName[] = "regatta-fault";

struct State {
  std::mutex mutex;
  bool armed = false;
  Fault fault;
  int64_t seen = 0;
  bool struck = false;
  int64_t wal_syncs = 0;
  int64_t unsynced_wal_writes = 0;
};
State g_state;

struct File {
  sqlite3_file base;
  int kind;
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* Self(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Self(file)->real(); }

// SQLITE_OK or the fault's code.
int Check(sqlite3_file* file, FaultAction operation) {
  std::lock_guard lock(g_state.mutex);
  const Fault& fault = g_state.fault;
  if (!g_state.armed || (fault.file_kinds & Self(file)->kind) == 0 ||
      (fault.action != FaultAction::kKill && fault.action != operation) ||
      ++g_state.seen < fault.nth) {
    return SQLITE_OK;
  }
  if (fault.action == FaultAction::kKill) kill(getpid(), SIGKILL);
  g_state.struck = true;
  return fault.code;
}

int Close(sqlite3_file* f) { return Real(f)->pMethods->xClose(Real(f)); }
int Read(sqlite3_file* f, void* data, int size, sqlite3_int64 offset) {
  return Real(f)->pMethods->xRead(Real(f), data, size, offset);
}
int Write(sqlite3_file* f, const void* data, int size, sqlite3_int64 offset) {
  if (const int code = Check(f, FaultAction::kFailWrites)) return code;
  if (Self(f)->kind == SQLITE_OPEN_WAL) {
    std::lock_guard lock(g_state.mutex);
    ++g_state.unsynced_wal_writes;
  }
  return Real(f)->pMethods->xWrite(Real(f), data, size, offset);
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  return Real(f)->pMethods->xTruncate(Real(f), size);
}
int Sync(sqlite3_file* f, int flags) {
  if (const int code = Check(f, FaultAction::kFailSyncs)) return code;
  if (Self(f)->kind == SQLITE_OPEN_WAL) {
    std::lock_guard lock(g_state.mutex);
    ++g_state.wal_syncs;
    g_state.unsynced_wal_writes = 0;
  }
  return Real(f)->pMethods->xSync(Real(f), flags);
}
int FileSize(sqlite3_file* f, sqlite3_int64* size) {
  return Real(f)->pMethods->xFileSize(Real(f), size);
}
int Lock(sqlite3_file* f, int level) {
  return Real(f)->pMethods->xLock(Real(f), level);
}
int Unlock(sqlite3_file* f, int level) {
  return Real(f)->pMethods->xUnlock(Real(f), level);
}
int CheckReservedLock(sqlite3_file* f, int* out) {
  return Real(f)->pMethods->xCheckReservedLock(Real(f), out);
}
int FileControl(sqlite3_file* f, int op, void* arg) {
  return Real(f)->pMethods->xFileControl(Real(f), op, arg);
}
int SectorSize(sqlite3_file* f) {
  return Real(f)->pMethods->xSectorSize(Real(f));
}
int DeviceCharacteristics(sqlite3_file* f) {
  return Real(f)->pMethods->xDeviceCharacteristics(Real(f));
}
int ShmMap(sqlite3_file* f, int page, int size, int extend,
           void volatile** out) {
  return Real(f)->pMethods->xShmMap(Real(f), page, size, extend, out);
}
int ShmLock(sqlite3_file* f, int offset, int n, int flags) {
  return Real(f)->pMethods->xShmLock(Real(f), offset, n, flags);
}
void ShmBarrier(sqlite3_file* f) { Real(f)->pMethods->xShmBarrier(Real(f)); }
int ShmUnmap(sqlite3_file* f, int remove) {
  return Real(f)->pMethods->xShmUnmap(Real(f), remove);
}
int Fetch(sqlite3_file* f, sqlite3_int64 offset, int size, void** out) {
  return Real(f)->pMethods->xFetch(Real(f), offset, size, out);
}
int Unfetch(sqlite3_file* f, sqlite3_int64 offset, void* page) {
  return Real(f)->pMethods->xUnfetch(Real(f), offset, page);
}

constexpr sqlite3_io_methods kMethods = {3,
                                         Close,
                                         Read,
                                         Write,
                                         Truncate,
                                         Sync,
                                         FileSize,
                                         Lock,
                                         Unlock,
                                         CheckReservedLock,
                                         FileControl,
                                         SectorSize,
                                         DeviceCharacteristics,
                                         ShmMap,
                                         ShmLock,
                                         ShmBarrier,
                                         ShmUnmap,
                                         Fetch,
                                         Unfetch};

constexpr int kKinds = SQLITE_OPEN_MAIN_DB | SQLITE_OPEN_TEMP_DB |
                       SQLITE_OPEN_MAIN_JOURNAL | SQLITE_OPEN_WAL;

int Open(sqlite3_vfs* vfs, const char* name, sqlite3_file* file, int flags,
         int* out_flags) {
  auto* real = static_cast<sqlite3_vfs*>(vfs->pAppData);
  Self(file)->base.pMethods = nullptr;
  Self(file)->kind = flags & kKinds;
  const int code = real->xOpen(real, name, Real(file), flags, out_flags);
  if (Real(file)->pMethods != nullptr) Self(file)->base.pMethods = &kMethods;
  return code;
}

sqlite3_vfs g_vfs;

}  // namespace

FaultVfs::FaultVfs() {
  sqlite3_vfs* real = sqlite3_vfs_find("unix");
  g_vfs = *real;  // everything that is not about an open file is passed on
  g_vfs.pNext = nullptr;
  g_vfs.zName = kName;
  g_vfs.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  g_vfs.pAppData = real;
  g_vfs.xOpen = Open;
  sqlite3_vfs_register(&g_vfs, /*makeDflt=*/1);
  Disarm();
}

FaultVfs::~FaultVfs() {
  sqlite3_vfs_unregister(&g_vfs);
  sqlite3_vfs_register(sqlite3_vfs_find("unix"), /*makeDflt=*/1);
}

void FaultVfs::Arm(const Fault& fault) {
  std::lock_guard lock(g_state.mutex);
  g_state.fault = fault;
  g_state.seen = 0;
  g_state.struck = false;
  g_state.armed = true;
}

void FaultVfs::Disarm() {
  std::lock_guard lock(g_state.mutex);
  g_state.armed = false;
}

bool FaultVfs::Struck() {
  std::lock_guard lock(g_state.mutex);
  return g_state.struck;
}

int64_t FaultVfs::WalSyncs() {
  std::lock_guard lock(g_state.mutex);
  return g_state.wal_syncs;
}

int64_t FaultVfs::UnsyncedWalWrites() {
  std::lock_guard lock(g_state.mutex);
  return g_state.unsynced_wal_writes;
}

}  // namespace regatta::testing
