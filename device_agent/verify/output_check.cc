#include "device_agent/verify/output_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "base/check.h"
#include "compiler/module/tensor_bytes.h"

namespace regatta {
namespace {

constexpr int64_t kChunk = 4096;

// Distance between 1 and the next number of the type.
double Spacing(DType type) {
  switch (type) {
    case DType::kF64:
      return 0x1p-52;
    case DType::kF16:
      return 0x1p-10;
    case DType::kBF16:
      return 0x1p-7;
    default:
      return 0x1p-23;
  }
}

// Calls visit(first, values) for chunks of the tensor as doubles.
template <typename Visit>
void ForChunks(const void* memory, int64_t elements, DType type, Visit visit) {
  const char* bytes = static_cast<const char*>(memory);
  for (int64_t first = 0; first < elements; first += kChunk) {
    visit(first, ReadValues(bytes + first * DTypeBytes(type),
                            std::min(kChunk, elements - first), type));
  }
}

double RootMeanSquare(const void* memory, int64_t elements, DType type) {
  if (!IsFloat(type)) return 0;
  double sum = 0;
  int64_t count = 0;
  ForChunks(memory, elements, type,
            [&](int64_t, const std::vector<double>& values) {
              for (double value : values) {
                if (!std::isfinite(value)) continue;
                sum += value * value;
                ++count;
              }
            });
  return count == 0 ? 0 : std::sqrt(sum / static_cast<double>(count));
}

void Note(const Tolerance& tolerance, int64_t element, double got,
          double expected, OutputCheck* check) {
  const double error = tolerance.Error(got, expected);
  check->max_error = std::max(check->max_error, error);
  if (error <= 1) return;
  if (check->wrong++ == 0) {
    check->element = element;
    check->got = got;
    check->expected = expected;
  }
}

}  // namespace

Tolerance::Tolerance(DType type, int64_t reduction_length, double rms) {
  if (!IsFloat(type)) return;
  const double accumulator = Spacing(AccumulatorType(type));
  const double stored = Spacing(type);
  absolute_ =
      accumulator * 4 * std::sqrt(static_cast<double>(reduction_length)) * rms +
      stored * 2 * rms;
  relative_ = accumulator * 16 + stored * 2;
}

double Tolerance::At(double expected) const {
  return absolute_ + relative_ * std::abs(expected);
}

double Tolerance::Error(double got, double expected) const {
  if (got == expected || (std::isnan(got) && std::isnan(expected))) return 0;
  if (!std::isfinite(got) || !std::isfinite(expected)) {
    return std::numeric_limits<double>::infinity();
  }
  return std::abs(got - expected) / At(expected);
}

std::string OutputCheck::Describe(int64_t elements) const {
  if (ok()) return "";
  return absl::StrFormat(
      "element %d of %d: got %.9g, expected %.9g; %d element%s wrong", element,
      elements, got, expected, wrong, wrong == 1 ? " is" : "s are");
}

OutputCheck CheckOutput(const void* got, const void* expected, int64_t elements,
                        DType type, int64_t reduction_length) {
  OutputCheck check;
  // Most integer outputs, and many others, are equal to the last bit.
  if (memcmp(got, expected, elements * DTypeBytes(type)) == 0) return check;
  const Tolerance tolerance(type, reduction_length,
                            RootMeanSquare(expected, elements, type));
  const char* wanted = static_cast<const char*>(expected);
  ForChunks(got, elements, type,
            [&](int64_t first, const std::vector<double>& values) {
              const std::vector<double> right = ReadValues(
                  wanted + first * DTypeBytes(type), values.size(), type);
              for (size_t i = 0; i < values.size(); ++i) {
                Note(tolerance, first + static_cast<int64_t>(i), values[i],
                     right[i], &check);
              }
            });
  return check;
}

OutputCheck CheckSamples(const void* output, int64_t elements, DType type,
                         int64_t reduction_length,
                         absl::Span<const int64_t> offsets,
                         absl::Span<const double> expected) {
  CHECK(offsets.size() == expected.size());
  const Tolerance tolerance(type, reduction_length,
                            RootMeanSquare(output, elements, type));
  OutputCheck check;
  const char* bytes = static_cast<const char*>(output);
  for (size_t i = 0; i < offsets.size(); ++i) {
    CHECK(offsets[i] >= 0 && offsets[i] < elements) << offsets[i];
    const double got =
        ReadValues(bytes + offsets[i] * DTypeBytes(type), 1, type)[0];
    Note(tolerance, offsets[i], got, expected[i], &check);
  }
  return check;
}

}  // namespace regatta
