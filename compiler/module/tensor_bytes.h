// A tensor's elements as a kernel sees them (packed bytes of its type, native
// byte order, row-major) and as numbers.
//
// Pure functions; thread-safe.
#ifndef REGATTA_COMPILER_MODULE_TENSOR_BYTES_H_
#define REGATTA_COMPILER_MODULE_TENSOR_BYTES_H_

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "compiler/module/dtype.h"

namespace regatta {

// Values are rounded to the type (RoundToDType).
std::string ValuesToBytes(absl::Span<const double> values, DType type);
// The same into memory of at least values.size() * DTypeBytes(type) bytes;
// alignment does not matter.
void WriteValues(absl::Span<const double> values, DType type, void* memory);

// InvalidArgument when the size is no multiple of the element's.
absl::StatusOr<std::vector<double>> BytesToValues(std::string_view bytes,
                                                  DType type);
// `elements` elements from memory of any alignment.
std::vector<double> ReadValues(const void* memory, size_t elements, DType type);

}  // namespace regatta

#endif  // REGATTA_COMPILER_MODULE_TENSOR_BYTES_H_
