// Writing the text of an expression: stages, then what is bound.
#ifndef REGATTA_COMPILER_OPS_EXPRESSION_TEXT_H_
#define REGATTA_COMPILER_OPS_EXPRESSION_TEXT_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace regatta {

// Collects the parts of one expression. Not thread-safe.
class ExpressionText {
 public:
  void Index(std::string_view name, int64_t extent);
  void Tensor(std::string_view name, std::string_view dtype,
              const std::vector<int64_t>& shape);
  // "TENSOR[indices] = value"; the tensor is bound with its type and shape.
  void Stage(std::string_view tensor, std::string_view dtype,
             const std::vector<int64_t>& shape,
             const std::vector<std::string>& indices, std::string_view value);
  std::string Text() const;

 private:
  std::vector<std::string> stages_, bindings_;
};

// "T[i,j+1]".
std::string Element(std::string_view tensor,
                    const std::vector<std::string>& subscripts);
// `count` names PREFIX0, PREFIX1, ...
std::vector<std::string> Names(std::string_view prefix, size_t count);
// A number as an expression spells it.
std::string Real(double value);

}  // namespace regatta

#endif  // REGATTA_COMPILER_OPS_EXPRESSION_TEXT_H_
