// C as a language for kernels: one call of a kernel is one work-item. Groups
// share no memory and have no barriers.
#ifndef REGATTA_TESTS_COMPILER_PLAIN_C_PLAIN_C_DIALECT_H_
#define REGATTA_TESTS_COMPILER_PLAIN_C_PLAIN_C_DIALECT_H_

#include <string>
#include <vector>

#include "compiler/codegen/c_like/dialect.h"

namespace regatta::plain_c {

class PlainCDialect : public c_like::Dialect {
 public:
  std::string_view long_type() const override { return "long long"; }
  std::string_view signed_char() const override { return "signed char"; }
  bool has_half() const override { return false; }
  const c_like::ImageWords* images() const override { return nullptr; }
  std::string Pragmas(bool uses_f64) const override;
  std::string KernelHead(const std::string& entry,
                         const c_like::Extents& group) const override;
  std::string Parameter(DType dtype, bool stored,
                        const std::string& name) const override;
  std::string LocalArrays(
      const std::vector<c_like::LocalArray>& arrays) const override;
  int64_t LaunchBytes(
      const std::vector<c_like::LocalArray>& arrays) const override {
    return 0;
  }
  std::string GroupId(int dimension) const override;
  std::string ThreadId(int dimension) const override;
  int64_t max_outer_groups() const override { return 1 << 30; }
  std::string_view keep_loop() const override { return ""; }
  std::string Barrier(bool global) const override;
  std::string Intrinsic(
      std::string_view name,
      const std::vector<std::string>& operands) const override {
    return "";
  }
  std::string Function(std::string_view name, DType dtype) const override;
  std::string Infinity(DType dtype) const override { return "INFINITY"; }
  std::string NotANumber(DType dtype) const override { return "NAN"; }
  // So small that there are no vectors.
  int vector_bytes() const override { return 1; }
  bool must_align() const override { return false; }
  c_like::LoadedRun Load(const c_like::Run& run,
                         const std::string& name) const override;
  std::string Store(const c_like::Run& run,
                    const std::vector<std::string>& elements) const override;

 protected:
  Words words() const override;
  std::vector<c_like::Helper> HalfHelpers() const override;
};

}  // namespace regatta::plain_c

#endif  // REGATTA_TESTS_COMPILER_PLAIN_C_PLAIN_C_DIALECT_H_
