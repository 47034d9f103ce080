// A TrialResult as columns of the tables record and context, and back, with
// nothing lost.
//
// What many records share goes to a context, stored once: the texts of workload
// and target, versions, device. Serialised messages laid end to end parse as
// their merge, so context bytes followed by body bytes are the result again.
#ifndef REGATTA_STORAGE_SQLITE_RECORD_CODEC_H_
#define REGATTA_STORAGE_SQLITE_RECORD_CODEC_H_

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "absl/status/statusor.h"
#include "storage/tuning_log.h"

namespace regatta::sqlite {

struct EncodedRecord {
  BestKey key;
  std::string trial_id;
  int64_t job_id = 0;
  int task = 0;
  int64_t ordinal = 0;
  int outcome = 0;
  int kind = 0;
  bool abandoned = false;
  bool eligible = false;
  int64_t time_ns = 0;
  int64_t schedule_hash = 0;
  std::optional<std::string> binary_hash;  // 32 bytes
  std::string context;
  std::string context_digest;  // 32 bytes
  std::string body;
};

// 64 bits of the SHA-256 of space, version and text: finds the records of a
// schedule. Equal schedules have equal hashes; the converse is checked.
int64_t ScheduleHash(const v1::ScheduleText& schedule);
bool SameSchedule(const v1::ScheduleText& a, const v1::ScheduleText& b);

// What is stored has passed ValidateResult.
EncodedRecord Encode(const v1::TrialResult& result);

// DataLoss: the bytes are not a result.
absl::StatusOr<v1::TrialResult> Decode(
    std::string_view trial_id, std::string_view context, std::string_view body,
    std::optional<std::string_view> binary_hash);

// What counting evidence needs of a body, without decoding the rest: a schedule
// may have thousands of records.
struct BodyGlance {
  std::string_view schedule_text;  // within the body
  int64_t kept_blocks = 0;         // not throttled
};
// DataLoss: the bytes are not a body.
absl::StatusOr<BodyGlance> GlanceAtBody(std::string_view trial_id,
                                        std::string_view body);

// "512,512,512".
std::string EncodeExtents(const std::vector<int64_t>& extents);
absl::StatusOr<std::vector<int64_t>> DecodeExtents(std::string_view text);

}  // namespace regatta::sqlite

#endif  // REGATTA_STORAGE_SQLITE_RECORD_CODEC_H_
