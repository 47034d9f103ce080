#include "storage/sqlite/record_codec.h"

#include "absl/strings/str_cat.h"
#include "base/digest.h"
#include "base/random.h"
#include "google/protobuf/util/message_differencer.h"
#include "tests/storage/records.h"

namespace regatta::sqlite {
namespace {

using ::google::protobuf::FieldDescriptor;
using ::google::protobuf::Message;

// Sets about half of all fields, at random and recursively.
void Fill(Random& random, Message& message) {
  const auto* descriptor = message.GetDescriptor();
  const auto* reflection = message.GetReflection();
  for (int i = 0; i < descriptor->field_count(); ++i) {
    const FieldDescriptor* field = descriptor->field(i);
    if (random.Below(2) == 0) continue;
    if (field->is_repeated()) {
      for (uint64_t n = random.Below(3); n > 0; --n) {
        Fill(random, *reflection->AddMessage(&message, field));
      }
      continue;
    }
    switch (field->cpp_type()) {
      case FieldDescriptor::CPPTYPE_MESSAGE:
        Fill(random, *reflection->MutableMessage(&message, field));
        break;
      case FieldDescriptor::CPPTYPE_STRING:
        reflection->SetString(&message, field,
                              absl::StrCat("text ", random.Below(3)));
        break;
      case FieldDescriptor::CPPTYPE_INT32:
        reflection->SetInt32(&message, field, random.Below(100));
        break;
      case FieldDescriptor::CPPTYPE_INT64:
        reflection->SetInt64(&message, field, random.Next() >> 1);
        break;
      case FieldDescriptor::CPPTYPE_UINT64:
        reflection->SetUInt64(&message, field, random.Next());
        break;
      case FieldDescriptor::CPPTYPE_BOOL:
        reflection->SetBool(&message, field, true);
        break;
      case FieldDescriptor::CPPTYPE_DOUBLE:
        reflection->SetDouble(&message, field, random.Unit());
        break;
      case FieldDescriptor::CPPTYPE_ENUM:
        reflection->SetEnumValue(&message, field, 1 + random.Below(2));
        break;
      default:
        FAIL() << field->full_name() << " is of a type not dealt with here";
    }
  }
}

TEST(RecordCodec, LosesNothingOfAnyResult) {
  for (int seed = 0; seed < 500; ++seed) {
    Random random(seed);
    v1::TrialResult result;
    Fill(random, result);
    // A stored result always has one.
    result.mutable_spec()->set_trial_id("1/2/3");
    if (random.Below(2) == 0) result.set_binary_hash(Sha256Hex("x"));
    // Fields of a later release.
    result.GetReflection()->MutableUnknownFields(&result)->AddVarint(900, 7);
    const EncodedRecord record = Encode(result);
    std::optional<std::string_view> hash;
    if (record.binary_hash.has_value()) hash = *record.binary_hash;
    const auto decoded =
        Decode(record.trial_id, record.context, record.body, hash);
    ASSERT_OK(decoded);
    EXPECT_TRUE(
        google::protobuf::util::MessageDifferencer::Equals(*decoded, result))
        << "seed " << seed << "\n"
        << decoded->DebugString() << "\nwas\n"
        << result.DebugString();
  }
}

TEST(RecordCodec, AGlanceSeesWhatDecodingSees) {
  for (int seed = 0; seed < 200; ++seed) {
    Random random(seed);
    v1::TrialResult result;
    Fill(random, result);
    for (v1::Block& block : *result.mutable_blocks()) {
      block.set_throttled(random.Below(2) == 0);
    }
    result.GetReflection()->MutableUnknownFields(&result)->AddFixed32(900, 7);
    const std::string body = Encode(result).body;
    const auto glance = GlanceAtBody("1/2/3", body);
    ASSERT_OK(glance);
    EXPECT_EQ(glance->schedule_text, result.spec().schedule().text());
    int64_t kept = 0;
    for (const v1::Block& block : result.blocks()) kept += !block.throttled();
    EXPECT_EQ(glance->kept_blocks, kept);
    // Cut off anywhere it is either still a message, of what comes before, or
    // noticed.
    for (size_t size = 0; size < body.size(); ++size) {
      const std::string cut = body.substr(0, size);
      EXPECT_EQ(GlanceAtBody("1/2/3", cut).ok(),
                v1::TrialResult().ParseFromString(cut))
          << "seed " << seed << ", " << size << " of " << body.size();
    }
  }
  EXPECT_STATUS(GlanceAtBody("1/0/7", "\xff\xff\xff"), kDataLoss, "1/0/7");
}

TEST(RecordCodec, RecordsOfOneTaskShareAContextAndStaySmall) {
  const WorkloadInfo workload = testing::Matmul(512, 512, 512);
  const EncodedRecord a =
      Encode(testing::OkResult("1/0/1", workload, "tile=4", 1000));
  const EncodedRecord b =
      Encode(testing::OkResult("1/0/2", workload, "tile=8", 2000));
  EXPECT_EQ(a.context_digest, b.context_digest);
  EXPECT_EQ(a.context_digest.size(), 32u);
  EXPECT_NE(a.schedule_hash, b.schedule_hash);
  EXPECT_LT(a.body.size(), 60u);
}

TEST(RecordCodec, SaysWhichTrialCannotBeRead) {
  EXPECT_STATUS(Decode("1/0/7", "", "\xff\xff\xff", std::nullopt), kDataLoss,
                "1/0/7");
}

TEST(RecordCodec, SchedulesDifferByEveryPart) {
  v1::ScheduleText a;
  a.set_space("cpu");
  a.set_space_version(1);
  a.set_text("x");
  v1::ScheduleText b = a, c = a, d = a;
  b.set_space("gpu");
  c.set_space_version(2);
  d.set_text("y");
  for (const auto& other : {b, c, d}) {
    EXPECT_NE(ScheduleHash(a), ScheduleHash(other));
    EXPECT_FALSE(SameSchedule(a, other));
  }
  EXPECT_EQ(ScheduleHash(a), ScheduleHash(v1::ScheduleText(a)));
}

TEST(RecordCodec, ExtentsRoundTripAndDamageIsNoticed) {
  for (const std::vector<int64_t>& extents :
       {std::vector<int64_t>{}, {1}, {512, 1, int64_t{1} << 40}}) {
    EXPECT_EQ(DecodeExtents(EncodeExtents(extents)).value(), extents);
  }
  for (const char* bad : {"1,,2", "a", "1,-2", "0", "1,"}) {
    EXPECT_STATUS(DecodeExtents(bad), kDataLoss, bad);
  }
}

}  // namespace
}  // namespace regatta::sqlite
