#include "compiler/module/tensor_bytes.h"

#include <cstdint>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "base/check.h"
#include "compiler/module/half.h"

namespace regatta {
namespace {

template <typename T, typename Convert>
void WriteAs(absl::Span<const double> values, void* memory, Convert convert) {
  char* out = static_cast<char*>(memory);
  for (double value : values) {
    const T element = convert(value);
    std::memcpy(out, &element, sizeof(T));
    out += sizeof(T);
  }
}

template <typename T, typename Convert>
std::vector<double> ReadAs(const void* memory, size_t elements,
                           Convert convert) {
  std::vector<double> values(elements);
  const char* in = static_cast<const char*>(memory);
  for (double& value : values) {
    T element;
    std::memcpy(&element, in, sizeof(T));
    value = convert(element);
    in += sizeof(T);
  }
  return values;
}

double ToDouble(double value) { return value; }

}  // namespace

void WriteValues(absl::Span<const double> values, DType type, void* memory) {
  const auto rounded = [type](double value) {
    return RoundToDType(value, type);
  };
  switch (type) {
    case DType::kF64:
      return WriteAs<double>(values, memory, rounded);
    case DType::kF32:
      return WriteAs<float>(values, memory, rounded);
    case DType::kF16:
      return WriteAs<uint16_t>(values, memory, DoubleToF16Bits);
    case DType::kBF16:
      return WriteAs<uint16_t>(values, memory, DoubleToBF16Bits);
    case DType::kI32:
      return WriteAs<int32_t>(values, memory, rounded);
    case DType::kI8:
      return WriteAs<int8_t>(values, memory, rounded);
    case DType::kBool:
      return WriteAs<uint8_t>(values, memory, rounded);
  }
  CHECK(false) << "dtype " << static_cast<int>(type);
}

std::vector<double> ReadValues(const void* memory, size_t elements,
                               DType type) {
  switch (type) {
    case DType::kF64:
      return ReadAs<double>(memory, elements, ToDouble);
    case DType::kF32:
      return ReadAs<float>(memory, elements, ToDouble);
    case DType::kF16:
      return ReadAs<uint16_t>(memory, elements, F16BitsToDouble);
    case DType::kBF16:
      return ReadAs<uint16_t>(memory, elements, BF16BitsToDouble);
    case DType::kI32:
      return ReadAs<int32_t>(memory, elements, ToDouble);
    case DType::kI8:
      return ReadAs<int8_t>(memory, elements, ToDouble);
    case DType::kBool:
      return ReadAs<uint8_t>(memory, elements, ToDouble);
  }
  CHECK(false) << "dtype " << static_cast<int>(type);
}

std::string ValuesToBytes(absl::Span<const double> values, DType type) {
  std::string bytes(values.size() * DTypeBytes(type), '\0');
  WriteValues(values, type, bytes.data());
  return bytes;
}

absl::StatusOr<std::vector<double>> BytesToValues(std::string_view bytes,
                                                  DType type) {
  const size_t element = static_cast<size_t>(DTypeBytes(type));
  if (bytes.size() % element != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat(bytes.size(), " bytes are no whole number of ",
                     std::string(DTypeName(type)), " elements"));
  }
  return ReadValues(bytes.data(), bytes.size() / element, type);
}

}  // namespace regatta
