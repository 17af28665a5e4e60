module @jit_product attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<2x30x40xf64>, %2: tensor<2x40x5xf64>) -> (tensor<2x30x5xf64>) {
  %3 = "stablehlo.dot_general"(%1, %2) {dot_dimension_numbers = #stablehlo.dot<lhs_batching_dimensions = [0], rhs_batching_dimensions = [0], lhs_contracting_dimensions = [2], rhs_contracting_dimensions = [1]>} : (tensor<2x30x40xf64>, tensor<2x40x5xf64>) -> tensor<2x30x5xf64>
  func.return %3 : tensor<2x30x5xf64>
}
}
