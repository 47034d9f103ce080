#include "storage/sqlite/record_codec.h"

#include <charconv>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "base/digest.h"
#include "google/protobuf/io/coded_stream.h"
#include "storage/validate.h"

namespace regatta::sqlite {
namespace {

constexpr size_t kHashBytes = 32;

// The 32 bytes of lower-case SHA-256 hex; nothing for any other text, which
// then stays as it is.
std::optional<std::string> HashBytes(const std::string& hex) {
  if (hex.size() != 2 * kHashBytes) return std::nullopt;
  if (hex.find_first_not_of("0123456789abcdef") != std::string::npos) {
    return std::nullopt;
  }
  return absl::HexStringToBytes(hex);
}

// Moves what records share from `rest`, so that each field stands in one of the
// two.
v1::TrialResult TakeContext(v1::TrialResult& rest) {
  v1::TrialResult context;
  if (rest.has_spec()) {
    v1::TrialSpec& from = *rest.mutable_spec();
    v1::TrialSpec& to = *context.mutable_spec();
    to.set_allocated_workload(from.release_workload());
    to.set_allocated_workload_key(from.release_workload_key());
    to.set_allocated_device_class(from.release_device_class());
    to.set_allocated_target(from.release_target());
    to.set_allocated_compiler_version(from.release_compiler_version());
    to.set_allocated_policy(from.release_policy());
    if (from.has_schedule()) {
      v1::ScheduleText& schedule = *from.mutable_schedule();
      to.mutable_schedule()->set_allocated_space(schedule.release_space());
      to.mutable_schedule()->set_space_version(schedule.space_version());
      schedule.clear_space_version();
    }
  }
  if (rest.has_environment()) {
    v1::Environment& to = *context.mutable_environment();
    to = std::move(*rest.mutable_environment());
    // The readings are of this one trial.
    rest.clear_environment();
    if (to.sensors_size() > 0) {
      rest.mutable_environment()->mutable_sensors()->Swap(to.mutable_sensors());
    }
  }
  context.set_allocated_device_id(rest.release_device_id());
  context.set_allocated_device_class(rest.release_device_class());
  context.set_allocated_boot_id(rest.release_boot_id());
  context.set_allocated_provenance(rest.release_provenance());
  return context;
}

absl::Status Damaged(std::string_view trial_id) {
  return absl::DataLossError(
      absl::StrCat("the record of trial ", std::string(trial_id),
                   " cannot be read: its bytes are damaged"));
}

// Calls `visit` with the number of each field of a serialised message
// (protobuf.dev/programming-guides/encoding) and its bytes or, of a number, its
// value. False: the bytes are no message.
template <typename Visit>
bool ForEachField(std::string_view bytes, const Visit& visit) {
  google::protobuf::io::CodedInputStream in(
      reinterpret_cast<const uint8_t*>(bytes.data()),
      static_cast<int>(bytes.size()));
  while (const uint32_t tag = in.ReadTag()) {
    const int field = static_cast<int>(tag >> 3);
    uint64_t number = 0;
    switch (tag & 7) {
      case 0:
        if (!in.ReadVarint64(&number)) return false;
        visit(field, std::string_view(), number);
        continue;
      case 1:
        if (!in.Skip(8)) return false;
        continue;
      case 5:
        if (!in.Skip(4)) return false;
        continue;
      case 2:
        break;
      default:
        return false;
    }
    if (!in.ReadVarint64(&number)) return false;
    const auto at = static_cast<size_t>(in.CurrentPosition());
    if (number > bytes.size() - at) return false;
    visit(field, bytes.substr(at, number), 0);
    if (!in.Skip(static_cast<int>(number))) return false;
  }
  return in.ConsumedEntireMessage();
}

}  // namespace

int64_t ScheduleHash(const v1::ScheduleText& schedule) {
  const std::string digest =
      Sha256({absl::StrCat(schedule.space().size(), ":", schedule.space(), ":",
                           schedule.space_version(), ":", schedule.text())});
  uint64_t hash = 0;
  for (int i = 0; i < 8; ++i) {
    hash = hash << 8 | static_cast<unsigned char>(digest[i]);
  }
  return static_cast<int64_t>(hash);
}

bool SameSchedule(const v1::ScheduleText& a, const v1::ScheduleText& b) {
  return a.space() == b.space() && a.space_version() == b.space_version() &&
         a.text() == b.text();
}

EncodedRecord Encode(const v1::TrialResult& result) {
  EncodedRecord record;
  record.key = KeyOf(result);
  record.trial_id = result.spec().trial_id();
  record.job_id = result.spec().job_id();
  record.task = result.spec().task();
  record.ordinal = result.spec().ordinal();
  record.outcome = result.outcome();
  record.kind = result.spec().kind();
  record.abandoned = result.abandoned();
  record.eligible = IsEligible(result);
  record.time_ns = result.time_ns();
  record.schedule_hash = ScheduleHash(result.spec().schedule());
  record.binary_hash = HashBytes(result.binary_hash());

  v1::TrialResult rest = result;
  record.context = TakeContext(rest).SerializeAsString();
  record.context_digest = Sha256({record.context});
  rest.mutable_spec()->clear_trial_id();
  if (record.binary_hash.has_value()) rest.clear_binary_hash();
  record.body = rest.SerializeAsString();
  return record;
}

absl::StatusOr<v1::TrialResult> Decode(
    std::string_view trial_id, std::string_view context, std::string_view body,
    std::optional<std::string_view> binary_hash) {
  v1::TrialResult result;
  std::string bytes;
  bytes.reserve(context.size() + body.size());
  bytes.append(context).append(body);
  if (!result.ParseFromString(bytes)) {
    return Damaged(trial_id);
  }
  result.mutable_spec()->set_trial_id(std::string(trial_id));
  if (binary_hash.has_value()) {
    result.set_binary_hash(absl::BytesToHexString(
        absl::string_view(binary_hash->data(), binary_hash->size())));
  }
  return result;
}

absl::StatusOr<BodyGlance> GlanceAtBody(std::string_view trial_id,
                                        std::string_view body) {
  BodyGlance glance;
  bool whole = true;
  const auto in_schedule = [&](int field, std::string_view bytes, uint64_t) {
    if (field == v1::ScheduleText::kTextFieldNumber) {
      glance.schedule_text = bytes;
    }
  };
  const auto in_spec = [&](int field, std::string_view bytes, uint64_t) {
    if (field == v1::TrialSpec::kScheduleFieldNumber) {
      whole = whole && ForEachField(bytes, in_schedule);
    }
  };
  const auto in_body = [&](int field, std::string_view bytes, uint64_t) {
    if (field == v1::TrialResult::kSpecFieldNumber) {
      whole = whole && ForEachField(bytes, in_spec);
    } else if (field == v1::TrialResult::kBlocksFieldNumber) {
      bool throttled = false;
      whole = whole &&
              ForEachField(bytes, [&](int part, std::string_view, uint64_t on) {
                if (part == v1::Block::kThrottledFieldNumber) {
                  throttled = on != 0;
                }
              });
      if (!throttled) ++glance.kept_blocks;
    }
  };
  whole = ForEachField(body, in_body) && whole;
  if (!whole) return Damaged(trial_id);
  return glance;
}

std::string EncodeExtents(const std::vector<int64_t>& extents) {
  return absl::StrJoin(extents, ",");
}

absl::StatusOr<std::vector<int64_t>> DecodeExtents(std::string_view text) {
  std::vector<int64_t> extents;
  if (text.empty()) return extents;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    int64_t extent = 0;
    const auto [next, error] = std::from_chars(at, end, extent);
    if (error != std::errc() || extent < 1 || (next != end && *next != ',')) {
      return absl::DataLossError(
          absl::StrCat("the extents of a workload cannot be read: \"",
                       std::string(text), "\""));
    }
    extents.push_back(extent);
    if (next == end) return extents;
    at = next + 1;
  }
}

}  // namespace regatta::sqlite
