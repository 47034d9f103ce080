#include "proto/utf8_texts.h"

#include <string>
#include <utility>
#include <vector>

#include "base/utf8.h"

namespace regatta {
namespace {

using google::protobuf::FieldDescriptor;
using google::protobuf::Message;

void MakeTextUtf8(const FieldDescriptor* field, Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    const std::string text = reflection.GetString(message, field);
    if (std::string clean = Utf8(text); clean != text) {
      reflection.SetString(&message, field, std::move(clean));
    }
    return;
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    const std::string text = reflection.GetRepeatedString(message, field, i);
    if (std::string clean = Utf8(text); clean != text) {
      reflection.SetRepeatedString(&message, field, i, std::move(clean));
    }
  }
}

void MakePartsUtf8(const FieldDescriptor* field, Message& message) {
  const google::protobuf::Reflection& reflection = *message.GetReflection();
  if (!field->is_repeated()) {
    return MakeTextsUtf8(*reflection.MutableMessage(&message, field));
  }
  for (int i = 0; i < reflection.FieldSize(message, field); ++i) {
    MakeTextsUtf8(*reflection.MutableRepeatedMessage(&message, field, i));
  }
}

}  // namespace

void MakeTextsUtf8(Message& message) {
  std::vector<const FieldDescriptor*> fields;
  message.GetReflection()->ListFields(message, &fields);
  for (const FieldDescriptor* field : fields) {
    if (field->is_map()) continue;
    if (field->type() == FieldDescriptor::TYPE_STRING) {
      MakeTextUtf8(field, message);
    } else if (field->cpp_type() == FieldDescriptor::CPPTYPE_MESSAGE) {
      MakePartsUtf8(field, message);
    }
  }
}

}  // namespace regatta
