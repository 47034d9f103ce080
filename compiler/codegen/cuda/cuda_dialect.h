// CUDA C++ as NVRTC takes it, without any header.
#ifndef REGATTA_COMPILER_CODEGEN_CUDA_CUDA_DIALECT_H_
#define REGATTA_COMPILER_CODEGEN_CUDA_CUDA_DIALECT_H_

#include <string>
#include <vector>

#include "compiler/codegen/c_like/dialect.h"

namespace regatta::cuda {

class CudaDialect : public c_like::Dialect {
 public:
  // `architecture`: 80 for sm_80.
  explicit CudaDialect(int architecture) : architecture_(architecture) {}

  std::string_view long_type() const override { return "long long"; }
  std::string_view signed_char() const override { return "signed char"; }
  bool has_half() const override { return false; }
  const c_like::ImageWords* images() const override { return nullptr; }
  std::string Pragmas(bool uses_f64) const override { return ""; }
  std::string KernelHead(const std::string& entry,
                         const c_like::Extents& group) const override;
  std::string Parameter(DType dtype, bool stored,
                        const std::string& name) const override;
  // One array, whose size is given at launch, holds them all.
  std::string LocalArrays(
      const std::vector<c_like::LocalArray>& arrays) const override;
  int64_t LaunchBytes(
      const std::vector<c_like::LocalArray>& arrays) const override;
  std::string GroupId(int dimension) const override;
  std::string ThreadId(int dimension) const override;
  int64_t max_outer_groups() const override { return 65535; }
  std::string_view keep_loop() const override { return "#pragma unroll 1"; }
  std::string Barrier(bool global) const override;
  std::string Intrinsic(
      std::string_view name,
      const std::vector<std::string>& operands) const override;
  std::string Function(std::string_view name, DType dtype) const override;
  std::string Infinity(DType dtype) const override;
  std::string NotANumber(DType dtype) const override;
  int vector_bytes() const override { return 16; }
  bool must_align() const override { return true; }
  c_like::LoadedRun Load(const c_like::Run& run,
                         const std::string& name) const override;
  std::string Store(const c_like::Run& run,
                    const std::vector<std::string>& elements) const override;

 protected:
  Words words() const override;
  std::vector<c_like::Helper> HalfHelpers() const override;

 private:
  int architecture_;
};

}  // namespace regatta::cuda

#endif  // REGATTA_COMPILER_CODEGEN_CUDA_CUDA_DIALECT_H_
