#include "compiler/lower/image_verify.h"

#include <algorithm>
#include <set>
#include <string>

#include "absl/strings/str_cat.h"
#include "base/status_macros.h"

namespace regatta::loop {
namespace {

class ImageVerifier {
 public:
  explicit ImageVerifier(const Program& program) : program_(program) {}

  absl::Status Run() {
    for (const Buffer& buffer : program_.buffers) {
      if (buffer.image_row == 0) continue;
      if (buffer.scope != Scope::kWorkspace || buffer.per_thread ||
          (buffer.dtype != DType::kF32 && buffer.dtype != DType::kF16)) {
        return Error(buffer, "no workspace of f32 or f16 for all threads");
      }
      if (buffer.image_row < 0 || buffer.image_row % kPixelElements != 0 ||
          buffer.elements % buffer.image_row != 0) {
        return Error(buffer, absl::StrCat("rows of ", buffer.image_row,
                                          " elements of ", buffer.elements));
      }
    }
    for (const Kernel& kernel : program_.kernels) {
      kernel_ = &kernel;
      stored_.clear();
      loaded_.clear();
      RETURN_IF_ERROR(Check(*kernel.body, nullptr));
      for (const int id : stored_) {
        if (loaded_.count(id) > 0) {
          return Error(program_.buffers[id], "both loaded and stored to");
        }
      }
    }
    return absl::OkStatus();
  }

 private:
  absl::Status Error(const Buffer& buffer, const std::string& what) const {
    return absl::InternalError(
        absl::StrCat("loops: ", kernel_ == nullptr ? "" : kernel_->name + ": ",
                     "image ", buffer.name, ": ", what));
  }

  // `vector`: the vector loop around, or null.
  absl::Status Check(const Stmt& stmt, const Stmt* vector) {
    if (stmt.kind == Stmt::Kind::kFor && stmt.loop == LoopKind::kVector) {
      vector = &stmt;
    }
    if (stmt.kind == Stmt::Kind::kStore) {
      RETURN_IF_ERROR(CheckValue(*stmt.value, vector));
      if (program_.buffers[stmt.buffer].image_row > 0) {
        if (stmt.accumulate != Reduction::kNone) {
          return Error(program_.buffers[stmt.buffer], "accumulates");
        }
        stored_.insert(stmt.buffer);
        RETURN_IF_ERROR(CheckAccess(stmt.buffer, stmt.offset, vector));
      }
    }
    for (const IntrinsicOperand& operand : stmt.operands) {
      if (operand.buffer >= 0 &&
          program_.buffers[operand.buffer].image_row > 0) {
        return Error(program_.buffers[operand.buffer],
                     "an operand of an intrinsic");
      }
    }
    for (const StmtPtr& child : stmt.body) {
      RETURN_IF_ERROR(Check(*child, vector));
    }
    return absl::OkStatus();
  }

  absl::Status CheckValue(const Value& value, const Stmt* vector) {
    if (value.kind == Value::Kind::kLoad &&
        program_.buffers[value.buffer].image_row > 0) {
      loaded_.insert(value.buffer);
      RETURN_IF_ERROR(CheckAccess(value.buffer, value.offset, vector));
    }
    for (const ValuePtr& operand : value.operands) {
      RETURN_IF_ERROR(CheckValue(*operand, vector));
    }
    return absl::OkStatus();
  }

  absl::Status CheckAccess(int id, const Affine& offset,
                           const Stmt* vector) const {
    const Buffer& buffer = program_.buffers[id];
    if (!IsDeviceKernel(*kernel_)) return Error(buffer, "not on a device");
    if (vector == nullptr || vector->extent % kPixelElements != 0 ||
        offset.Coeff(vector->var) != 1) {
      return Error(buffer, "an access that is no vector of whole pixels");
    }
    const bool aligned =
        offset.constant() % kPixelElements == 0 &&
        std::all_of(offset.terms().begin(), offset.terms().end(),
                    [&](const Affine::Term& term) {
                      return term.var == vector->var ||
                             term.coeff % kPixelElements == 0;
                    });
    return aligned ? absl::OkStatus()
                   : Error(buffer, "an access from the middle of a pixel on");
  }

  const Program& program_;
  const Kernel* kernel_ = nullptr;
  std::set<int> stored_, loaded_;  // images, in kernel_
};

}  // namespace

absl::Status VerifyImages(const Program& program) {
  return ImageVerifier(program).Run();
}

}  // namespace regatta::loop
