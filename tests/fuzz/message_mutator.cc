#include "tests/fuzz/message_mutator.h"

#include <cstring>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/random.h"
#include "google/protobuf/io/tokenizer.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"
#include "google/protobuf/text_format.h"
#include "tests/storage/random_message.h"

namespace regatta::fuzz {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// Names that scripts use, so that what one step says another refers to.
constexpr const char* kNames[] = {
    "",           "a1",         "a2",        "d1",    "d2",
    "i1",         "i2",         "boot",      "boot2", "log1",
    "log2",       "1/0/0",      "1/0/1",     "2/0/0", "log1/1/0/0",
    "log1/1/0/1", "log1/2/0/0", "znver4-2c", "c1",    "cpu"};
constexpr int64_t kNumbers[] = {0, 1, 2, 3, 60'000, -1, int64_t{1} << 40};

// Says nothing of errors: most of what a fuzzer makes has some.
class Silent : public google::protobuf::io::ErrorCollector {
  void AddError(int line, int column, const std::string& message) override {}
};

// The message and everything below it.
void Collect(Message* message, std::vector<Message*>* all) {
  all->push_back(message);
  const Reflection& r = *message->GetReflection();
  std::vector<const FieldDescriptor*> fields;
  r.ListFields(*message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->cpp_type() != FieldDescriptor::CPPTYPE_MESSAGE) continue;
    if (!field->is_repeated()) {
      Collect(r.MutableMessage(message, field), all);
      continue;
    }
    for (int i = 0; i < r.FieldSize(*message, field); ++i) {
      Collect(r.MutableRepeatedMessage(message, field, i), all);
    }
  }
}

void SetScalar(Message& message, const FieldDescriptor* field, Random& random) {
  const Reflection& r = *message.GetReflection();
  const int64_t number = kNumbers[random.Below(std::size(kNumbers))];
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING:
      r.SetString(&message, field, kNames[random.Below(std::size(kNames))]);
      return;
    case FieldDescriptor::CPPTYPE_INT64:
      r.SetInt64(&message, field, number);
      return;
    case FieldDescriptor::CPPTYPE_INT32:
      r.SetInt32(&message, field, static_cast<int32_t>(number));
      return;
    case FieldDescriptor::CPPTYPE_BOOL:
      r.SetBool(&message, field, random.Below(2) == 0);
      return;
    case FieldDescriptor::CPPTYPE_ENUM:
      r.SetEnumValue(&message, field, static_cast<int>(random.Below(6)));
      return;
    default:
      r.ClearField(&message, field);
  }
}

void MutateRepeated(Message& message, const FieldDescriptor* field,
                    Random& random) {
  const Reflection& r = *message.GetReflection();
  const auto count = static_cast<uint64_t>(r.FieldSize(message, field));
  if (count == 0) {
    if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      r.AddMessage(&message, field);
    }
    return;
  }
  const int at = static_cast<int>(random.Below(count));
  const int last = static_cast<int>(count) - 1;
  switch (random.Below(3)) {
    case 0:  // once more, at the end
      if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
        const auto copy = std::unique_ptr<Message>(
            r.GetRepeatedMessage(message, field, at).New());
        copy->CopyFrom(r.GetRepeatedMessage(message, field, at));
        r.AddMessage(&message, field)->CopyFrom(*copy);
      }
      return;
    case 1:
      r.SwapElements(&message, field, at, last);
      return;
    default:
      r.SwapElements(&message, field, at, last);
      r.RemoveLast(&message, field);
  }
}

void MutateOnce(Message& root, Random& random) {
  std::vector<Message*> all;
  Collect(&root, &all);
  Message& message = *all[random.Below(all.size())];
  const auto* type = message.GetDescriptor();
  if (type->field_count() == 0) return;
  if (random.Below(16) == 0) {
    testing::Randomise(message, random);
    return;
  }
  const FieldDescriptor* field = type->field(static_cast<int>(
      random.Below(static_cast<uint64_t>(type->field_count()))));
  if (field->is_repeated()) {
    MutateRepeated(message, field, random);
  } else if (random.Below(4) == 0) {
    message.GetReflection()->ClearField(&message, field);
  } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
    message.GetReflection()->MutableMessage(&message, field);
  } else {
    SetScalar(message, field, random);
  }
}

}  // namespace

bool ReadText(const uint8_t* data, size_t size, Message* message) {
  google::protobuf::TextFormat::Parser parser;
  Silent silent;
  parser.RecordErrorsTo(&silent);
  parser.SetRecursionLimit(32);
  google::protobuf::io::ArrayInputStream in(data, static_cast<int>(size));
  if (parser.Parse(&in, message)) return true;
  message->Clear();
  return false;
}

size_t MutateText(Message& message, uint8_t* data, size_t size, size_t max_size,
                  unsigned seed) {
  ReadText(data, size, &message);
  Random random(seed);
  for (uint64_t n = 1 + random.Below(4); n > 0; --n)
    MutateOnce(message, random);
  std::string text;
  google::protobuf::TextFormat::PrintToString(message, &text);
  if (text.size() > max_size) return size;
  std::memcpy(data, text.data(), text.size());
  return text.size();
}

}  // namespace regatta::fuzz
