#include "tests/storage/random_message.h"

#include <cmath>
#include <limits>
#include <string>

namespace regatta::testing {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

template <typename Integer>
Integer RandomInteger(Random& random) {
  switch (random.Next() % 4) {
    case 0:
      return std::numeric_limits<Integer>::max();
    case 1:
      return std::numeric_limits<Integer>::min();
    default:
      return static_cast<Integer>(random.Next());
  }
}

double RandomDouble(Random& random) {
  constexpr double kValues[] = {0.1,
                                -0.0,
                                5e-324,
                                1.7976931348623157e308,
                                1e15 + 0.3,
                                std::numeric_limits<double>::infinity(),
                                -std::numeric_limits<double>::infinity()};
  if (random.Next() % 2 == 0) return kValues[random.Next() % 7];
  return static_cast<double>(random.Next()) / 3e9;
}

std::string RandomText(Random& random) {
  constexpr const char* kPieces[] = {"a",      "\"",        "\\",   "\n",
                                     "\t",     "\x01",      "\x7f", "\u00e9",
                                     "\u4e2d", "\U0001F600"};
  std::string text;
  for (uint64_t n = random.Next() % 12; n > 0; --n) {
    text += kPieces[random.Next() % 10];
  }
  if (random.Next() % 8 == 0) text += std::string(1, '\0');
  return text;
}

void Put(Message& message, const FieldDescriptor* field, Random& random) {
  const Reflection& r = *message.GetReflection();
  const bool many = field->is_repeated();
  switch (field->cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32: {
      const auto value = RandomInteger<int32_t>(random);
      many ? r.AddInt32(&message, field, value)
           : r.SetInt32(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_INT64: {
      const auto value = RandomInteger<int64_t>(random);
      many ? r.AddInt64(&message, field, value)
           : r.SetInt64(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_UINT32: {
      const auto value = RandomInteger<uint32_t>(random);
      many ? r.AddUInt32(&message, field, value)
           : r.SetUInt32(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_UINT64: {
      const auto value = RandomInteger<uint64_t>(random);
      many ? r.AddUInt64(&message, field, value)
           : r.SetUInt64(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_DOUBLE: {
      const double value = RandomDouble(random);
      many ? r.AddDouble(&message, field, value)
           : r.SetDouble(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_BOOL: {
      const bool value = random.Next() % 2 == 0;
      many ? r.AddBool(&message, field, value)
           : r.SetBool(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_STRING: {
      const std::string value = RandomText(random);
      many ? r.AddString(&message, field, value)
           : r.SetString(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_ENUM: {
      const auto& type = *field->enum_type();
      const int value =
          type.value(static_cast<int>(random.Next() % type.value_count()))
              ->number();
      many ? r.AddEnumValue(&message, field, value)
           : r.SetEnumValue(&message, field, value);
      return;
    }
    case FieldDescriptor::CPPTYPE_MESSAGE:
      Randomise(many ? *r.AddMessage(&message, field)
                     : *r.MutableMessage(&message, field),
                random);
      return;
    case FieldDescriptor::CPPTYPE_FLOAT:
      return;
  }
}

}  // namespace

void Randomise(Message& message, Random& random) {
  const auto& type = *message.GetDescriptor();
  for (int i = 0; i < type.field_count(); ++i) {
    if (random.Next() % 2 == 0) continue;
    const FieldDescriptor* field = type.field(i);
    const int times =
        field->is_repeated() ? static_cast<int>(random.Next() % 4) : 1;
    for (int n = 0; n < times; ++n) Put(message, field, random);
  }
}

}  // namespace regatta::testing
