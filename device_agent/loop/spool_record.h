// The records of a spool file: framing, checksums, and a reader that survives
// damage. See spool.h for the layout.
#ifndef REGATTA_DEVICE_AGENT_LOOP_SPOOL_RECORD_H_
#define REGATTA_DEVICE_AGENT_LOOP_SPOOL_RECORD_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "device_agent/loop/spool_storage.h"

namespace regatta {

inline constexpr std::string_view kSpoolHeader = "RGTSPL1\n";
inline constexpr int64_t kSpoolHeaderBytes = 8;
inline constexpr int64_t kSpoolRecordOverhead = 13;
// No record is longer; a longer length field is damage.
inline constexpr int64_t kSpoolMaxPayload = int64_t{16} << 20;

enum SpoolRecordType : uint8_t {
  kSpoolResult = 1,  // payload: SpooledResult
  kSpoolForget = 2,  // payload: TrialAck with trial_id and attempt
};

std::string FrameSpoolRecord(SpoolRecordType type, std::string_view payload);

struct SpoolRecord {
  uint8_t type = 0;
  std::string_view payload;
  int64_t size = 0;  // of the whole record
};

// The record at the start of `bytes`; nullopt when there is none whose length
// fits and whose checksum holds.
std::optional<SpoolRecord> ParseSpoolRecord(std::string_view bytes);

struct SpoolScan {
  int64_t records = 0;
  int64_t damaged = 0;  // stretches without a good record, not the last
  int64_t damaged_bytes = 0;
  int64_t end = 0;  // of the last good record
};

// Calls `visit(record, offset)` for every good record from `start` on. A visit
// that returns false declares the record damaged.
absl::StatusOr<SpoolScan> ScanSpool(
    SpoolStorage& storage, int64_t start, int64_t file_size,
    const std::function<bool(const SpoolRecord&, int64_t offset)>& visit);

}  // namespace regatta

#endif  // REGATTA_DEVICE_AGENT_LOOP_SPOOL_RECORD_H_
