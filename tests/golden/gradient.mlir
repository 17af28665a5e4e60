module @jit_gradient attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32} {
func.func public @main(%1: tensor<3xf64>) -> (tensor<3xf64>) {
  %2 = "stablehlo.sine"(%1) : (tensor<3xf64>) -> tensor<3xf64>
  %3 = "stablehlo.cosine"(%1) : (tensor<3xf64>) -> tensor<3xf64>
  %4 = "stablehlo.constant"() {value = dense<1.0> : tensor<f64>} : () -> tensor<f64>
  %5 = "stablehlo.broadcast_in_dim"(%4) {broadcast_dimensions = array<i64>} : (tensor<f64>) -> tensor<3xf64>
  %6 = "stablehlo.multiply"(%5, %2) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %7 = "stablehlo.multiply"(%5, %1) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %8 = "stablehlo.multiply"(%7, %3) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  %9 = "stablehlo.add"(%6, %8) : (tensor<3xf64>, tensor<3xf64>) -> tensor<3xf64>
  func.return %9 : tensor<3xf64>
}
}
