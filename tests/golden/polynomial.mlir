module @jit_polynomial attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<3xf64>, %2: tensor<f64>) -> (tensor<3xf64>, tensor<3xf64>) {
  %3 = "stablehlo.constant"() {value = dense<2.0> : tensor<f64>} : () -> tensor<f64>
  %4 = "stablehlo.broadcast_in_dim"(%3) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
  %5 = "stablehlo.multiply"(%1, %4) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %6 = "stablehlo.multiply"(%2, %3) : (tensor<f64>, tensor<f64>) -> tensor<f64>
  %7 = "stablehlo.broadcast_in_dim"(%6) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
  %8 = "stablehlo.add"(%5, %7) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %9 = "stablehlo.multiply"(%8, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  func.return %8, %9 : tensor<3xf64>, tensor<3xf64>
}
}
