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
  DiskModel* model = nullptr;
};
State g_state;

struct File {
  sqlite3_file base;
  int kind;
  const char* path;  // SQLite's, while the file is open
  sqlite3_file* real() { return reinterpret_cast<sqlite3_file*>(this + 1); }
};

File* Self(sqlite3_file* file) { return reinterpret_cast<File*>(file); }
sqlite3_file* Real(sqlite3_file* file) { return Self(file)->real(); }

enum class Call { kWrite, kSync, kTruncate, kDelete, kOpen };

int ErrorOf(Call call) {
  switch (call) {
    case Call::kWrite:
      return SQLITE_IOERR_WRITE;
    case Call::kSync:
      return SQLITE_IOERR_FSYNC;
    case Call::kTruncate:
      return SQLITE_IOERR_TRUNCATE;
    case Call::kDelete:
      return SQLITE_IOERR_DELETE;
    case Call::kOpen:
      return SQLITE_CANTOPEN;
  }
  return SQLITE_INTERNAL;
}

bool Counts(FaultAction action, Call call) {
  switch (action) {
    case FaultAction::kFailWrites:
      return call == Call::kWrite;
    case FaultAction::kFailSyncs:
      return call == Call::kSync;
    case FaultAction::kKill:
      return call == Call::kWrite || call == Call::kSync;
    case FaultAction::kFailCall:
    case FaultAction::kFailCalls:
      return true;
  }
  return false;
}

// SQLITE_OK or the fault's code.
int Check(int kind, Call call) {
  std::lock_guard lock(g_state.mutex);
  const Fault& fault = g_state.fault;
  if (!g_state.armed || (fault.file_kinds & kind) == 0 ||
      !Counts(fault.action, call) || ++g_state.seen < fault.nth) {
    return SQLITE_OK;
  }
  switch (fault.action) {
    case FaultAction::kKill:
      kill(getpid(), SIGKILL);
      break;
    case FaultAction::kFailCall:
      if (g_state.seen > fault.nth) return SQLITE_OK;
      break;
    default:
      break;
  }
  g_state.struck = true;
  const bool by_call = fault.action == FaultAction::kFailCall ||
                       fault.action == FaultAction::kFailCalls;
  return by_call ? ErrorOf(call) : fault.code;
}

bool LeavesHalf() {
  std::lock_guard lock(g_state.mutex);
  return g_state.fault.action == FaultAction::kFailCall && g_state.fault.half;
}

// Runs `tell` with the model, when there is one and it has a name for it.
template <typename Tell>
void TellModel(const char* path, const Tell& tell) {
  std::lock_guard lock(g_state.mutex);
  if (g_state.model != nullptr && path != nullptr) tell(*g_state.model);
}

int Close(sqlite3_file* f) { return Real(f)->pMethods->xClose(Real(f)); }
int Read(sqlite3_file* f, void* data, int size, sqlite3_int64 offset) {
  return Real(f)->pMethods->xRead(Real(f), data, size, offset);
}
int ReallyWrite(sqlite3_file* f, const void* data, int size,
                sqlite3_int64 offset) {
  const int code = Real(f)->pMethods->xWrite(Real(f), data, size, offset);
  if (code != SQLITE_OK) return code;
  TellModel(Self(f)->path, [&](DiskModel& model) {
    model.Wrote(Self(f)->path, offset,
                {static_cast<const char*>(data), static_cast<size_t>(size)});
  });
  return code;
}
int Write(sqlite3_file* f, const void* data, int size, sqlite3_int64 offset) {
  if (const int code = Check(Self(f)->kind, Call::kWrite)) {
    if (LeavesHalf()) (void)ReallyWrite(f, data, size / 2, offset);
    return code;
  }
  if (Self(f)->kind == SQLITE_OPEN_WAL) {
    std::lock_guard lock(g_state.mutex);
    ++g_state.unsynced_wal_writes;
  }
  return ReallyWrite(f, data, size, offset);
}
int Truncate(sqlite3_file* f, sqlite3_int64 size) {
  if (const int code = Check(Self(f)->kind, Call::kTruncate)) return code;
  const int code = Real(f)->pMethods->xTruncate(Real(f), size);
  if (code != SQLITE_OK) return code;
  TellModel(Self(f)->path,
            [&](DiskModel& model) { model.Truncated(Self(f)->path, size); });
  return code;
}
int Sync(sqlite3_file* f, int flags) {
  if (const int code = Check(Self(f)->kind, Call::kSync)) {
    TellModel(Self(f)->path,
              [&](DiskModel& model) { model.SyncFailed(Self(f)->path); });
    return code;
  }
  {
    std::lock_guard lock(g_state.mutex);
    if (Self(f)->kind == SQLITE_OPEN_WAL) {
      ++g_state.wal_syncs;
      g_state.unsynced_wal_writes = 0;
    }
    if (g_state.model != nullptr && Self(f)->path != nullptr) {
      g_state.model->Synced(Self(f)->path);
      return SQLITE_OK;
    }
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
  Self(file)->path = name;
  if (const int code = Check(flags & kKinds, Call::kOpen)) return code;
  TellModel(name, [&](DiskModel& model) { model.Opening(name); });
  const int code = real->xOpen(real, name, Real(file), flags, out_flags);
  if (Real(file)->pMethods != nullptr) Self(file)->base.pMethods = &kMethods;
  if (code == SQLITE_OK) {
    TellModel(name, [&](DiskModel& model) { model.Opened(name); });
  }
  return code;
}

// What kind of file it was is not said: it counts as any.
int Delete(sqlite3_vfs* vfs, const char* name, int sync_folder) {
  auto* real = static_cast<sqlite3_vfs*>(vfs->pAppData);
  if (const int code = Check(kKinds, Call::kDelete)) return code;
  TellModel(name,
            [&](DiskModel& model) { model.Deleting(name, sync_folder != 0); });
  return real->xDelete(real, name, sync_folder);
}

sqlite3_vfs g_vfs;

}  // namespace

FaultVfs::FaultVfs(DiskModel* model) {
  sqlite3_vfs* real = sqlite3_vfs_find("unix");
  g_vfs = *real;  // everything that is not about an open file is passed on
  g_vfs.pNext = nullptr;
  g_vfs.zName = kName;
  g_vfs.szOsFile = static_cast<int>(sizeof(File)) + real->szOsFile;
  g_vfs.pAppData = real;
  g_vfs.xOpen = Open;
  g_vfs.xDelete = Delete;
  sqlite3_vfs_register(&g_vfs, /*makeDflt=*/1);
  Disarm();
  std::lock_guard lock(g_state.mutex);
  g_state.model = model;
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

int64_t FaultVfs::Seen() {
  std::lock_guard lock(g_state.mutex);
  return g_state.seen;
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
