// Copies of an operand in panels as wide as a tile, made before the main
// kernel.
#include <algorithm>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "compiler/space/rules/accesses.h"
#include "compiler/space/rules/contraction_emitter.h"

namespace regatta {

using loop::LoopKind;
using loop::StmtPtr;
using loop::ValuePtr;

namespace {

bool Uses(const Expr& access, int index) {
  return std::any_of(
      access.subscripts.begin(), access.subscripts.end(),
      [&](const Affine& form) { return form.Coeff(index) != 0; });
}

// [other indices][panel][k...][value][product]. The summed indices stand in the
// order in which the micro-kernel walks them.
class PanelPacker {
 public:
  struct Layout {
    int index;                   // whose values the panels are of
    int64_t extent;              // of them
    int64_t width;               // of them in one panel
    int64_t lanes;               // of a vector that is copied
    std::vector<int> outer;      // indices around the panels
    std::vector<int> inner;      // summed indices
    std::vector<int64_t> steps;  // of each of `inner`
    int group;                   // among `inner`, or -1
    int64_t depth;               // values of it in one step
    double add;                  // to every element
    LoopKind kind;               // of the outermost loop
  };
  using Bind = std::function<Affine(int)>;

  PanelPacker(LoopBuilder& out, const Expr& access, Layout layout)
      : out_(out), access_(access), l_(std::move(layout)) {
    for (int64_t steps : l_.steps) panel_depth_ *= steps;
    panel_depth_ *= l_.depth;
    row_ = RoundUp(l_.extent, l_.width) * panel_depth_;
  }

  int64_t Elements() const {
    int64_t elements = row_;
    for (int index : l_.outer) elements *= Extent(index);
    return elements;
  }

  // `panel`: the first value of a panel, a multiple of its width. The summed
  // indices are bound to the first values of steps.
  Affine Offset(const Bind& bind, const Affine& panel,
                const Affine& position) const {
    Affine block, k;
    for (int index : l_.outer) block = block * Extent(index) + bind(index);
    for (size_t i = 0; i < l_.inner.size(); ++i) {
      Affine step = bind(l_.inner[i]);
      if (l_.inner[i] == l_.group) step = DivideExactly(step, l_.depth);
      k = k * l_.steps[i] + step;
    }
    return block * row_ + panel * panel_depth_ + k * (l_.width * l_.depth) +
           position * l_.depth;
  }

  // The loops that fill `buffer`.
  StmtPtr Pack(int buffer) {
    buffer_ = buffer;
    return Outer(0);
  }

 private:
  int64_t Extent(int index) const {
    return out_.workload().indices[index].extent;
  }

  StmtPtr Outer(size_t d) {
    if (d == l_.outer.size()) {
      return ForTiles(out_, Affine(), l_.extent, l_.width,
                      d == 0 ? l_.kind : LoopKind::kSerial,
                      [&](const Affine& start, int64_t values) {
                        panel_ = start;
                        return Inner(0, values);
                      });
    }
    return MakeLoop(out_, Extent(l_.outer[d]),
                    d == 0 ? l_.kind : LoopKind::kSerial,
                    [&](const Affine& var) {
                      bound_[l_.outer[d]] = var;
                      return Outer(d + 1);
                    });
  }

  StmtPtr Inner(size_t d, int64_t values) {
    if (d == l_.inner.size()) return Values(values);
    const int index = l_.inner[d];
    const auto body = [&](const Affine& start) {
      bound_[index] = start;
      return Inner(d + 1, values);
    };
    if (index != l_.group) {
      return MakeLoop(out_, Extent(index), LoopKind::kSerial, body);
    }
    return ForTiles(out_, Affine(), Extent(index), l_.depth, LoopKind::kSerial,
                    [&](const Affine& start, int64_t products) {
                      products_ = products;
                      return body(start);
                    });
  }

  // One step of the summed indices for all values of a panel.
  StmtPtr Values(int64_t values) {
    if (l_.group >= 0 &&
        FlatForm(out_.workload(), access_).Coeff(l_.group) == 1) {
      return MakeLoop(
          out_, values, LoopKind::kSerial,
          [&](const Affine& position) { return Products(position); });
    }
    return ForVectors(
        out_, VectorTile::Of(values, l_.lanes), [&](const VectorPosition& at) {
          std::vector<StmtPtr> stores;
          for (int64_t e = 0; e < l_.depth; ++e) {
            stores.push_back(
                Store(at.position, Affine(e),
                      e < products_ ? Load(at.position, Affine(e)) : Zero()));
          }
          return loop::Block(std::move(stores));
        });
  }

  // The neighbours of one step are neighbours in the tensor too.
  StmtPtr Products(const Affine& position) {
    std::vector<StmtPtr> parts;
    parts.push_back(
        MakeLoop(out_, products_, LoopKind::kVector, [&](const Affine& e) {
          return Store(position, e, Load(position, e));
        }));
    if (products_ < l_.depth) {
      parts.push_back(MakeLoop(out_, l_.depth - products_, LoopKind::kVector,
                               [&](const Affine& lane) {
                                 return Store(position, lane + products_,
                                              Zero());
                               }));
    }
    return loop::Block(std::move(parts));
  }

  ValuePtr Load(const Affine& position, const Affine& e) const {
    ValuePtr value = out_.LoadTensor(access_, [&](int index) {
      if (index == l_.index) return panel_ + position;
      const Affine& bound = bound_.at(index);
      return index == l_.group ? bound + e : bound;
    });
    if (l_.add == 0) return value;
    const DType type = value->dtype;
    return loop::Binary(BinaryOp::kAdd, std::move(value),
                        loop::Const(l_.add, type));
  }
  ValuePtr Zero() const {
    return loop::Const(l_.add, out_.buffer(buffer_).dtype);
  }
  StmtPtr Store(const Affine& position, const Affine& e, ValuePtr value) const {
    return loop::Store(
        buffer_,
        Offset([&](int index) { return bound_.at(index); }, panel_, position) +
            e,
        std::move(value));
  }

  LoopBuilder& out_;
  const Expr& access_;
  const Layout l_;
  int64_t panel_depth_ = 1;  // elements of one value in a panel
  int64_t row_ = 1;          // elements of all panels
  int buffer_ = -1;
  // State of the walk.
  std::map<int, Affine> bound_;
  Affine panel_;
  int64_t products_ = 1;
};

}  // namespace

ContractionEmitter::Operand ContractionEmitter::PackPanels(
    const Expr& access, int index, int64_t width,
    const std::vector<const std::vector<int>*>& others, double add) {
  const TensorDecl& tensor = out_.workload().tensors[access.tensor];
  PanelPacker::Layout layout{
      .index = index,
      .extent = Extent(index),
      .width = width,
      .lanes = CopyLanes(tensor),
      .group = tiling_.group,
      .depth = tiling_.products.depth,
      .add = add,
      .kind = any_parallel_ ? LoopKind::kParallel : LoopKind::kSerial};
  for (const std::vector<int>* group : others) {
    for (int other : *group) {
      if (other != index && Uses(access, other)) layout.outer.push_back(other);
    }
  }
  for (int summed : tiling_.k_order) {
    if (!Uses(access, summed)) continue;
    layout.inner.push_back(summed);
    layout.steps.push_back(Steps(summed));
  }
  const auto packer =
      std::make_shared<PanelPacker>(out_, access, std::move(layout));
  const int buffer = AddScratch(absl::StrCat("packed_", tensor.name),
                                tensor.dtype, packer->Elements(), false);
  out_.AddKernel(absl::StrCat("pack_", tensor.name), packer->Pack(buffer));
  return {.access = &access,
          .buffer = buffer,
          .offset = [this, packer, index](const Bind& bind) {
            const Affine& start = bound_.at(index);
            return packer->Offset(bind, start, bind(index) - start);
          }};
}

}  // namespace regatta
