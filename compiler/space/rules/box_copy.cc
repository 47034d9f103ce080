#include "compiler/space/rules/box_copy.h"

#include <algorithm>
#include <utility>

#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/loop_nest.h"

namespace regatta {
namespace {

// Vectors copied per step.
constexpr int64_t kCopyVectors = 4;

loop::ValuePtr LoadAt(const LoopBuilder& out, const Expr& access,
                      const std::vector<Affine>& subscripts) {
  const int id = out.TensorBuffer(access.tensor);
  const std::vector<int64_t>& shape =
      out.workload().tensors[access.tensor].shape;
  const auto extent = [&](int i) { return out.workload().indices[i].extent; };
  std::vector<loop::Guard> guards;
  Affine offset;
  for (size_t d = 0; d < shape.size(); ++d) {
    offset = offset * shape[d] + subscripts[d];
    const Affine& form = access.subscripts[d];
    if (access.pad_value &&
        (form.Min(extent) < 0 || form.Max(extent) >= shape[d])) {
      guards.push_back({subscripts[d], shape[d]});
    }
  }
  return loop::Load(out.buffer(id), id, std::move(offset), std::move(guards),
                    access.pad_value.value_or(0));
}

}  // namespace

Box BoxOf(const Expr& access, const std::map<int, int64_t>& varying,
          int64_t lanes) {
  const auto extent = [&](int index) {
    const auto it = varying.find(index);
    return it == varying.end() ? 1 : it->second;
  };
  Box box;
  const size_t rank = access.subscripts.size();
  for (const Affine& form : access.subscripts) {
    const Affine varying_part = form - Affine(form.constant());
    box.low.push_back(varying_part.Min(extent));
    box.extent.push_back(varying_part.Max(extent) - box.low.back() + 1);
  }
  box.stride.assign(rank, 1);
  for (size_t d = rank; d-- > 0;) {
    box.stride[d] = box.elements;
    box.elements *= box.extent[d];
    const bool row = d + 1 == rank && rank > 1 && box.extent[d] >= 64;
    if (row) box.elements = RoundUp(box.elements, lanes) + lanes;
  }
  return box;
}

Affine BoxOffset(const Expr& access, const Box& box,
                 const std::function<Affine(int)>& bind,
                 const std::function<Affine(int)>& first) {
  Affine offset;
  for (size_t d = 0; d < box.stride.size(); ++d) {
    const Affine& form = access.subscripts[d];
    const Affine local = BindForm(form, bind) - BindForm(form, first);
    offset = offset + (local + -box.low[d]) * box.stride[d];
  }
  return offset;
}

loop::StmtPtr CopyBox(LoopBuilder& out, const Expr& access, const Box& box,
                      const Box& part, int buffer,
                      const std::function<Affine(int)>& first, int64_t lanes,
                      loop::LoopKind kind) {
  const size_t rank = box.stride.size();
  std::vector<Affine> source;
  for (size_t d = 0; d < rank; ++d) {
    source.push_back(BindForm(access.subscripts[d], first) + part.low[d]);
  }
  const auto copy = [&](const std::vector<Affine>& at) {
    std::vector<Affine> subscripts;
    Affine offset;
    for (size_t d = 0; d < rank; ++d) {
      subscripts.push_back(source[d] + at[d]);
      offset = offset + (at[d] + (part.low[d] - box.low[d])) * box.stride[d];
    }
    return loop::Store(buffer, offset, LoadAt(out, access, subscripts));
  };
  std::vector<Affine> at(rank);
  const std::function<loop::StmtPtr(size_t)> nest =
      [&](size_t d) -> loop::StmtPtr {
    const loop::LoopKind here = d == 0 ? kind : loop::LoopKind::kSerial;
    if (d + 1 < rank) {
      return MakeLoop(out, part.extent[d], here, [&](const Affine& var) {
        at[d] = var;
        return nest(d + 1);
      });
    }
    return ForTiles(out, Affine(), part.extent[d], kCopyVectors * lanes, here,
                    [&](const Affine& start, int64_t extent) {
                      return ForVectors(out, VectorTile::Of(extent, lanes),
                                        [&](const VectorPosition& p) {
                                          at[d] = start + p.position;
                                          return copy(at);
                                        });
                    });
  };
  return nest(0);
}

}  // namespace regatta
