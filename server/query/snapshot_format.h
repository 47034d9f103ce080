// The layout of a snapshot file; docs/snapshot-format.md explains it.
//
// Every number is little-endian, every table starts at a multiple of 8 bytes
// and is used where it is mapped. A released version never changes: another
// layout is another kSnapshotVersion.
#ifndef REGATTA_SERVER_QUERY_SNAPSHOT_FORMAT_H_
#define REGATTA_SERVER_QUERY_SNAPSHOT_FORMAT_H_

#include <bit>
#include <cstdint>
#include <string_view>
#include <type_traits>

namespace regatta::snapshot {

static_assert(std::endian::native == std::endian::little,
              "snapshots are mapped as they are");

inline constexpr char kMagic[8] = {'R', 'G', 'T', 'B', 'E', 'S', 'T', '\n'};
inline constexpr uint32_t kSnapshotVersion = 2;

// Bytes in the text section.
struct Text {
  uint32_t offset = 0;
  uint32_t length = 0;
};

struct Table {
  uint64_t offset = 0;  // from the start of the file
  uint64_t count = 0;   // of entries; bytes of the text section
};

struct Header {
  char magic[8] = {};
  uint32_t version = kSnapshotVersion;
  int32_t space_version = 0;
  uint64_t file_bytes = 0;
  uint8_t digest[32] = {};  // SHA-256 of the file with these bytes zero
  Text compiler_version;    // of the program that wrote it, for CPUs
  Table workloads;          // Workload, by key
  Table structures;         // uint32_t: workloads by structure, then key
  Table texts;              // TextHash, by hash
  Table cells;    // Cell, by workload, class, threads, cache and imported
  Table classes;  // Class, by name
  Table extents;  // int64_t
  Table text;     // bytes
};
static_assert(sizeof(Header) == 176);

struct Workload {
  Text key;
  Text text;
  Text family;
  Text structure;
  uint64_t first_extent = 0;
  uint32_t extents = 0;
  uint32_t first_cell = 0;
  uint32_t cells = 0;
  uint32_t zero = 0;
};
static_assert(sizeof(Workload) == 56);

// Of the normal form of a workload's text.
struct TextHash {
  uint64_t hash = 0;
  uint32_t workload = 0;
  uint32_t zero = 0;
};
static_assert(sizeof(TextHash) == 16);

enum CellFlags : uint32_t {
  kConfirmed = 1,   // by an interleaved comparison
  kTaken = 2,       // see BestKnown::taken
  kImported = 4,    // of another log's boards: a key of its own
  kSameBinary = 8,  // see BestKnown::same_binary
  kAllFlags = 15,
};

struct Cell {
  uint32_t workload = 0;
  uint32_t device_class = 0;  // index
  int32_t threads = 0;
  int32_t cache = 0;  // v1.CacheState
  uint32_t flags = 0;
  int32_t kind = 0;  // v1.TrialKind
  int32_t space_version = 0;
  uint32_t zero = 0;
  int64_t time_ns = 0;
  int64_t low_ns = 0;
  int64_t high_ns = 0;
  int64_t samples = 0;
  int64_t boards = 0;
  int64_t default_ns = 0;
  double speedup = 0;
  double speedup_low = 0;
  double speedup_high = 0;
  int64_t since_unix_ms = 0;
  int64_t recorded_unix_ms = 0;
  Text space;
  Text schedule;
  Text target;
  Text compiler_version;
  Text measure_protocol;
  Text binary_hash;
  Text trial_id;
  Text device_id;
  Text provenance;
};
static_assert(sizeof(Cell) == 192);

enum ClassFlags : uint32_t {
  kSimulated = 1,
  kHasFacts = 2,  // the log has a best-known row of the class
  kOwn = 4,       // a class of this log's boards, not of imported records alone
  kAllClassFlags = 7,
};

struct Class {
  Text name;
  Text target;            // "": not known
  Text measure_protocol;  // in use; "": not known
  Text fact_target;       // what the newest best-known row says
  Text fact_protocol;
  uint32_t flags = 0;
  int32_t cores = 0;  // 0: not known
};
static_assert(sizeof(Class) == 48);

// FNV-1a, 64 bits.
constexpr uint64_t HashText(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : text) {
    hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001b3;
  }
  return hash;
}

}  // namespace regatta::snapshot

#endif  // REGATTA_SERVER_QUERY_SNAPSHOT_FORMAT_H_
