#include "compiler/space/rules/box_copy.h"

#include <algorithm>
#include <utility>

#include "base/check.h"
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

loop::ValuePtr Plus(loop::ValuePtr value, double add) {
  if (add == 0) return value;
  const DType type = value->dtype;
  return loop::Binary(BinaryOp::kAdd, std::move(value), loop::Const(add, type));
}

// Writes the loops of one copy.
class BoxCopier {
 public:
  BoxCopier(LoopBuilder& out, const Expr& access, const Box& box,
            const Box& part, int buffer, int64_t lanes, loop::LoopKind kind,
            double add)
      : out_(out),
        access_(access),
        box_(box),
        part_(part),
        buffer_(buffer),
        lanes_(lanes),
        kind_(kind),
        add_(add),
        at_(box.stride.size()) {}

  loop::StmtPtr Copy(const std::function<Affine(int)>& first) {
    for (size_t d = 0; d < at_.size(); ++d) {
      source_.push_back(BindForm(access_.subscripts[d], first) + part_.low[d]);
    }
    return Nest(0, kind_);
  }

 private:
  bool Grouped() const { return box_.group.depth > 1; }
  size_t Last() const { return at_.size() - 1; }

  loop::StmtPtr Nest(size_t d, loop::LoopKind kind) {
    // The steps of a group that does not run along the rows are the last loop
    // around them.
    const bool across = Grouped() && part_.group_dim != Last();
    if (across && d == part_.group_dim) return Nest(d + 1, kind);
    if (d < Last()) {
      return MakeLoop(out_, part_.extent[d], kind, [&](const Affine& var) {
        at_[d] = var;
        return Nest(d + 1, loop::LoopKind::kSerial);
      });
    }
    if (!across) return Row(kind);
    return ForTiles(out_, Affine(), part_.group_extent, box_.group.depth, kind,
                    [&](const Affine& start, int64_t values) {
                      step_ = start;
                      return Steps(values);
                    });
  }

  // Neighbours stay neighbours.
  loop::StmtPtr Row(loop::LoopKind kind) {
    const int64_t extent =
        Grouped() ? part_.group_extent : part_.extent[Last()];
    std::vector<loop::StmtPtr> parts;
    parts.push_back(ForTiles(
        out_, Affine(), extent, kCopyVectors * lanes_, kind,
        [&](const Affine& start, int64_t size) {
          return ForVectors(out_, VectorTile::Of(size, lanes_),
                            [&](const VectorPosition& p) {
                              at_[Last()] = start + p.position;
                              return loop::Store(buffer_, Offset(), Load(at_));
                            });
        }));
    if (Grouped() && extent % box_.group.depth != 0) {
      const int64_t rest = box_.group.depth - extent % box_.group.depth;
      parts.push_back(MakeLoop(out_, rest, loop::LoopKind::kVector,
                               [&](const Affine& lane) {
                                 at_[Last()] = lane + extent;
                                 return loop::Store(buffer_, Offset(), Zero());
                               }));
    }
    return loop::Block(std::move(parts));
  }

  // One step of `values` values along rows of vectors.
  loop::StmtPtr Steps(int64_t values) {
    return ForTiles(
        out_, Affine(), part_.extent[Last()], kCopyVectors * lanes_,
        loop::LoopKind::kSerial, [&](const Affine& start, int64_t size) {
          return ForVectors(
              out_, VectorTile::Of(size, lanes_), [&](const VectorPosition& p) {
                std::vector<loop::StmtPtr> stores;
                for (int64_t e = 0; e < box_.group.depth; ++e) {
                  at_[Last()] = start + p.position;
                  at_[part_.group_dim] = step_ + e;
                  stores.push_back(loop::Store(
                      buffer_, Offset(), e < values ? Load(at_) : Zero()));
                }
                return loop::Block(std::move(stores));
              });
        });
  }

  loop::ValuePtr Load(const std::vector<Affine>& at) const {
    std::vector<Affine> subscripts;
    for (size_t d = 0; d < at.size(); ++d) {
      subscripts.push_back(source_[d] + at[d]);
    }
    return Plus(LoadAt(out_, access_, subscripts), add_);
  }
  loop::ValuePtr Zero() const {
    return loop::Const(add_, out_.buffer(buffer_).dtype);
  }

  // Where `at_` goes; of a group, `at_` counts values: whole steps are terms,
  // the rest is the constant.
  Affine Offset() const {
    Affine offset;
    for (size_t d = 0; d < at_.size(); ++d) {
      const Affine place = at_[d] + (part_.low[d] - box_.low[d]);
      if (!Grouped() || d != part_.group_dim) {
        offset = offset + place * box_.stride[d];
      } else if (d == Last()) {
        offset = offset + place;  // steps are neighbours
      } else {
        const int64_t rest = place.constant() % box_.group.depth;
        offset =
            offset +
            DivideExactly(place + -rest, box_.group.depth) * box_.stride[d] +
            rest;
      }
    }
    return offset;
  }

  LoopBuilder& out_;
  const Expr& access_;
  const Box& box_;
  const Box& part_;
  const int buffer_;
  const int64_t lanes_;
  const loop::LoopKind kind_;
  const double add_;
  std::vector<Affine> source_;  // the box's first element
  std::vector<Affine> at_;      // relative to it
  Affine step_;
};

}  // namespace

Affine DivideExactly(const Affine& form, int64_t divisor) {
  CHECK(form.constant() % divisor == 0);
  Affine quotient(form.constant() / divisor);
  for (const Affine::Term& term : form.terms()) {
    CHECK(term.coeff % divisor == 0);
    quotient = quotient + Affine::Var(term.var, term.coeff / divisor);
  }
  return quotient;
}

Box BoxOf(const Expr& access, const std::map<int, int64_t>& varying,
          int64_t lanes, BoxGroup group) {
  const auto extent = [&](int index) {
    const auto it = varying.find(index);
    return it == varying.end() ? 1 : it->second;
  };
  Box box;
  box.group = group;
  const size_t rank = access.subscripts.size();
  for (size_t d = 0; d < rank; ++d) {
    const Affine& form = access.subscripts[d];
    const Affine varying_part = form - Affine(form.constant());
    box.low.push_back(varying_part.Min(extent));
    box.extent.push_back(varying_part.Max(extent) - box.low.back() + 1);
    if (group.depth > 1 && form.Coeff(group.index) != 0) {
      CHECK(form.terms().size() == 1);
      box.group_dim = d;
      box.group_extent = box.extent.back();
      box.extent.back() = CeilDiv(box.extent.back(), group.depth);
    }
  }
  box.stride.assign(rank, 1);
  box.elements = group.depth;
  for (size_t d = rank; d-- > 0;) {
    box.stride[d] = box.elements;
    box.elements *= box.extent[d];
    const bool row = d + 1 == rank && rank > 1 && box.elements >= 64;
    const int64_t apart = lanes * group.depth;
    if (row) box.elements = RoundUp(box.elements, apart) + apart;
  }
  return box;
}

Affine BoxOffset(const Expr& access, const Box& box,
                 const std::function<Affine(int)>& bind,
                 const std::function<Affine(int)>& first) {
  Affine offset;
  for (size_t d = 0; d < box.stride.size(); ++d) {
    const Affine& form = access.subscripts[d];
    Affine local = BindForm(form, bind) - BindForm(form, first) + -box.low[d];
    if (box.group.depth > 1 && d == box.group_dim) {
      local = DivideExactly(local, box.group.depth);
    }
    offset = offset + local * box.stride[d];
  }
  return offset;
}

loop::StmtPtr CopyBox(LoopBuilder& out, const Expr& access, const Box& box,
                      const Box& part, int buffer,
                      const std::function<Affine(int)>& first, int64_t lanes,
                      loop::LoopKind kind, double add) {
  return BoxCopier(out, access, box, part, buffer, lanes, kind, add)
      .Copy(first);
}

}  // namespace regatta
