// OpenCL C 1.2.
#ifndef REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_DIALECT_H_
#define REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_DIALECT_H_

#include <string>
#include <vector>

#include "compiler/codegen/c_like/dialect.h"
#include "compiler/target/target.h"

namespace regatta::opencl {

// Pixels are read without a sampler: OpenCL 1.2 has that for whole coordinates.
class OpenClImages : public c_like::ImageWords {
 public:
  // `fp16`: registers hold halves.
  explicit OpenClImages(bool fp16) : fp16_(fp16) {}

  std::string Parameter(bool stored, const std::string& name) const override;
  c_like::LoadedRun Load(const std::string& image, DType dtype,
                         const std::string& x, const std::string& y,
                         const std::string& name) const override;
  std::string Store(const std::string& image, DType dtype, const std::string& x,
                    const std::string& y,
                    const std::vector<std::string>& elements) const override;

 private:
  bool Half(DType dtype) const { return fp16_ && dtype == DType::kF16; }

  bool fp16_;
};

class OpenClDialect : public c_like::Dialect {
 public:
  // REQUIRES: `target` is complete.
  explicit OpenClDialect(const Target& target);

  std::string_view long_type() const override { return "long"; }
  std::string_view signed_char() const override { return "char"; }
  bool has_half() const override { return fp16_; }
  const c_like::ImageWords* images() const override { return &images_; }
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
  int64_t max_outer_groups() const override;
  std::string_view keep_loop() const override { return ""; }
  std::string Barrier(bool global) const override;
  std::string Intrinsic(
      std::string_view name,
      const std::vector<std::string>& operands) const override {
    return "";
  }
  std::string Function(std::string_view name, DType dtype) const override;
  std::string Infinity(DType dtype) const override;
  std::string NotANumber(DType dtype) const override;
  int vector_bytes() const override { return vector_bytes_; }
  bool must_align() const override { return false; }
  c_like::LoadedRun Load(const c_like::Run& run,
                         const std::string& name) const override;
  std::string Store(const c_like::Run& run,
                    const std::vector<std::string>& elements) const override;

 protected:
  Words words() const override;
  std::vector<c_like::Helper> HalfHelpers() const override;

 private:
  int vector_bytes_;
  bool fp16_;  // the target computes in half
  OpenClImages images_;
};

}  // namespace regatta::opencl

#endif  // REGATTA_COMPILER_CODEGEN_OPENCL_OPENCL_DIALECT_H_
